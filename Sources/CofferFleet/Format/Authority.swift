import CofferCrypto

/// The public part of a version of the members: the admins' public keys, signed by an admin of the previous version.
///
/// All versions stay on the carrier, so that anyone who knows the first can verify the last.
struct Authority: Equatable {
  static let maximumAdminCount = 64
  static let folderByteCount = 8

  var fleet: [UInt8]
  /// From 1, one more with each change of the members.
  var version: UInt32
  /// When it was created, in milliseconds since 1970.
  var time: Int64
  /// SHA-256 of the previous version's object; zeros in the first.
  var previous: [UInt8]
  /// The number of the fleet key in use, and the folder of the records sealed under it.
  var epoch: UInt32
  var folder: [UInt8]
  /// SHA-256 of the object `members`.
  var members: [UInt8]
  /// The head that the fleet had: commits that came after it under the previous version do not count.
  var base: Base
  /// Their Ed25519 keys.
  var admins: [[UInt8]]

  /// A place in the log of heads.
  struct Base: Equatable {
    var index: UInt64
    /// SHA-256 of the head.
    var head: [UInt8]

    /// That of the first version.
    static let none = Base(index: 0, head: [UInt8](repeating: 0, count: SHA256.byteCount))
  }

  static func object(_ version: UInt32) -> String {
    let digits = String(version)
    return "authority/" + String(repeating: "0", count: 10 - digits.utf8.count) + digits
  }

  // MARK: Bytes

  /// The object, signed by an admin.
  func signed(by identity: Identity) throws -> [UInt8] {
    var bytes = [Format.version] + fleet
    bytes.append(number: version)
    bytes.append(number: time)
    bytes += previous
    bytes.append(number: epoch)
    bytes += folder + members
    bytes.append(number: base.index)
    bytes += base.head
    bytes.append(number: UInt16(admins.count))
    for admin in admins { bytes += admin }
    bytes += identity.signingKey
    return bytes + (try identity.sign(bytes, as: .authority))
  }

  /// Reads the first version, identified by its digest.
  init(first bytes: [UInt8], digest: [UInt8]) throws {
    let object = Self.object(1)
    guard ConstantTime.isEqual(try bytes.digest, digest) else {
      throw FleetError.damaged(object: object, reason: "it belongs to another fleet")
    }
    let (authority, signer) = try Self.read(bytes, object)
    guard authority.version == 1, authority.admins.contains(signer) else {
      throw FleetError.damaged(object: object, reason: "it is not the first version")
    }
    self = authority
  }

  /// Reads the version that follows another.
  init(_ bytes: [UInt8], after previous: Authority, digest: [UInt8]) throws {
    let object = Self.object(previous.version + 1)
    let (authority, signer) = try Self.read(bytes, object)
    guard authority.fleet == previous.fleet, authority.version == previous.version + 1,
      ConstantTime.isEqual(authority.previous, digest), authority.epoch >= previous.epoch
    else { throw FleetError.damaged(object: object, reason: "it does not follow the previous version") }
    guard previous.admins.contains(signer) else {
      throw FleetError.damaged(object: object, reason: "its signer was not an admin")
    }
    self = authority
  }

  /// Reads a version that was verified before.
  init(verified bytes: [UInt8]) throws { self = try Self.read(bytes, "authority").authority }

  private static func read(_ bytes: [UInt8], _ object: String) throws -> (authority: Authority, signer: [UInt8]) {
    let (authority, signer, signature) = try Format.read(bytes, object) { reader in
      let authority = try Authority(&reader)
      let signer = try reader.array(Ed25519.publicKeyByteCount)
      let signature = try reader.array(Ed25519.signatureByteCount)
      try reader.end()
      return (authority, signer, signature)
    }
    let signed = Array(bytes.dropLast(Ed25519.signatureByteCount))
    guard try SignedObject.authority.isValid(signature, of: signed, by: signer) else {
      throw FleetError.damaged(object: object, reason: "its signature is invalid")
    }
    return (authority, signer)
  }

  init(
    fleet: [UInt8], version: UInt32, time: Int64, previous: [UInt8], epoch: UInt32, folder: [UInt8], members: [UInt8],
    base: Base, admins: [[UInt8]]
  ) {
    (self.fleet, self.version, self.time, self.previous) = (fleet, version, time, previous)
    (self.epoch, self.folder, self.members) = (epoch, folder, members)
    (self.base, self.admins) = (base, admins)
  }

  private init(_ reader: inout ByteReader) throws(MalformedObject) {
    fleet = try reader.array(Members.fleetIDByteCount)
    version = try reader.number()
    time = try reader.number()
    previous = try reader.array(SHA256.byteCount)
    epoch = try reader.number()
    folder = try reader.array(Self.folderByteCount)
    members = try reader.array(SHA256.byteCount)
    base = Base(index: try reader.number(), head: try reader.array(SHA256.byteCount))
    let count = try reader.number(UInt16.self)
    guard (1...Self.maximumAdminCount).contains(Int(count)), version >= 1, version < .max, epoch >= 1 else {
      throw MalformedObject(reason: "its numbers are out of range")
    }
    admins = []
    for _ in 0..<count { admins.append(try reader.array(Ed25519.publicKeyByteCount)) }
  }
}
