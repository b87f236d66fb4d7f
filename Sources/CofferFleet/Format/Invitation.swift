import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An invitation to a fleet for one member: a secret of one line.
///
/// Anyone who has it can join as that member until a host has. Handle it like a private key.
///
/// ```swift
/// let invitation = try await fleet.invite("web-17", role: .reader)
/// invitation.text.withUnsafeBytes { FileHandle.standardOutput.write(Data($0)) }
/// ```
public struct Invitation: Sendable {
  /// The carrier's address, as used by the admin who created the invitation.
  public let carrier: String
  /// When it expires; nil for never.
  public let expires: Date?

  let fleet: [UInt8]
  /// SHA-256 of the first version of the members, which names the first admin.
  let firstAuthority: [UInt8]
  /// The version of the members that the carrier must have at least.
  let version: UInt32
  let member: MemberID
  let seed: SecretBytes

  private static let prefix = "coffer-fleet-1:"
  private static let checksumByteCount = 4
  private static let maximumByteCount = 4096

  init(
    carrier: String, expires: Date?, fleet: [UInt8], firstAuthority: [UInt8], version: UInt32,
    member: MemberID, seed: SecretBytes
  ) {
    (self.carrier, self.expires, self.fleet) = (carrier, expires, fleet)
    (self.firstAuthority, self.version, self.member, self.seed) = (firstAuthority, version, member, seed)
  }

  /// The line, without a line end.
  public var text: SecretBytes {
    get throws {
      var bytes = fleet + firstAuthority
      // Reserved once: growing would free memory with the seed unwiped.
      bytes.reserveCapacity(256 + carrier.utf8.count)
      bytes.append(number: version)
      bytes += member.bytes
      defer { bytes.withUnsafeMutableBytes { Memory.wipe($0) } }
      seed.withUnsafeBytes { bytes.append(contentsOf: $0) }
      bytes.append(number: expires.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) } ?? 0)
      bytes += Array(carrier.utf8)
      bytes += try bytes.digest.prefix(Self.checksumByteCount)
      let digits = [UInt8]("0123456789abcdef".utf8)
      return SecretBytes(count: Self.prefix.utf8.count + 2 * bytes.count) { text in
        text.copyBytes(from: Self.prefix.utf8)
        var position = Self.prefix.utf8.count
        for byte in bytes {
          (text[position], text[position + 1]) = (digits[Int(byte >> 4)], digits[Int(byte & 15)])
          position += 2
        }
      }
    }
  }

  /// Parses an invitation; white space around it is ignored.
  ///
  /// - Throws: ``FleetError/badInvitation(reason:)``.
  public init(text: SecretBytes) throws {
    self = try text.withUnsafeBytes { try Invitation(line: $0) }
  }

  private init(line: UnsafeRawBufferPointer) throws {
    func bad(_ reason: String) -> FleetError { .badInvitation(reason: reason) }
    var line = line[...]
    while let last = line.last, last <= 0x20 { line.removeLast() }
    while let first = line.first, first <= 0x20 { line.removeFirst() }
    guard !line.isEmpty else { throw bad("it is empty") }
    guard line.starts(with: Self.prefix.utf8) else { throw bad("it does not begin with \(Self.prefix)") }
    line = line.dropFirst(Self.prefix.utf8.count)
    guard line.count <= 2 * Self.maximumByteCount else { throw bad("it is too long") }
    guard line.count.isMultiple(of: 2) else { throw bad("it is truncated") }
    var isHexadecimal = true
    func digit(_ index: Int) -> UInt8 {
      switch line[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): return line[index] - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): return line[index] - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): return line[index] - UInt8(ascii: "A") + 10
      default:
        isHexadecimal = false
        return 0
      }
    }
    let bytes = SecretBytes(count: line.count / 2) { bytes in
      for index in 0..<bytes.count {
        let place = line.startIndex + 2 * index
        bytes[index] = digit(place) << 4 | digit(place + 1)
      }
    }
    guard isHexadecimal else { throw bad("it has characters that are not hexadecimal digits") }
    self = try bytes.withUnsafeBytes { bytes in
      let count = bytes.count - Self.checksumByteCount
      guard count > 0 else { throw bad("it is truncated") }
      let body = UnsafeRawBufferPointer(rebasing: bytes[..<count])
      guard try SHA256.digest(body).prefix(Self.checksumByteCount).elementsEqual(bytes[count...]) else {
        throw bad("it was mistyped or truncated")
      }
      do {
        var reader = ByteReader(body)
        let (fleet, first) = (try reader.array(Members.fleetIDByteCount), try reader.array(SHA256.byteCount))
        let version = try reader.number(UInt32.self)
        let member = MemberID(bytes: try reader.array(MemberID.byteCount))
        let seed = SecretBytes(copying: try reader.bytes(Identity.seedByteCount))
        let expires = try reader.number(Int64.self)
        guard let carrier = String(validating: reader.rest(), as: UTF8.self) else {
          throw bad("its address is not UTF-8")
        }
        return Invitation(
          carrier: carrier, expires: expires == 0 ? nil : Date(timeIntervalSince1970: Double(expires) / 1000),
          fleet: fleet, firstAuthority: first, version: version, member: member, seed: seed)
      } catch is MalformedObject { throw bad("it is truncated") }
    }
  }
}
