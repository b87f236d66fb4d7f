import CofferCrypto

/// The state of the whole fleet after the last commit.
struct Head: Equatable {
  static let object = "head"

  /// A part of a commit that did not fit into one request; see FLEET.md, Commits.
  struct PieceReference: Equatable {
    var id: [UInt8]
    /// SHA-256 of its object.
    var digest: [UInt8]
  }

  /// Higher than those of all heads that its author has seen.
  var number: UInt64
  /// When it was created, in milliseconds since 1970.
  var time: Int64
  var author: MemberID
  /// The version of the members at that time, and SHA-256 of its object.
  var membersVersion: UInt32
  var authority: [UInt8]
  /// Those of the shared collections, in the order of their folders.
  var collections: [CollectionHead]
  /// The heads before it.
  var log = HeadLog()
  var pieces: [PieceReference] = []

  static let pieceIDByteCount = 8
  /// How far a head's number may be above the last one that a host has seen: more commits than were ever missed.
  static let greatestStep: UInt64 = 1 << 32
  /// The greatest number for a host that has seen none.
  static let greatestFirstNumber: UInt64 = 1 << 52
  static let maximumPieceCount = 1024

  // MARK: Bytes

  /// The prefix that can be read without keys: format, and version of the members.
  private static let clearByteCount = 5

  static func membersVersion(of bytes: [UInt8]) throws -> UInt32 { try Format.read(bytes, object) { try $0.number() } }

  /// The sealed object, signed by `identity`, its author.
  func sealed(_ keys: FleetKeys, by identity: Identity) throws -> [UInt8] {
    var plaintext = encoded
    plaintext += try identity.sign(Self.signedBytes(plaintext, keys), as: .head)
    var bytes = [Format.version]
    bytes.append(number: membersVersion)
    try plaintext.withUnsafeBytes { try keys.seal($0, for: .head, into: &bytes) }
    return bytes
  }

  /// Fleet and epoch are signed, too, so that a head is valid in one fleet only.
  private static func signedBytes(_ plaintext: [UInt8], _ keys: FleetKeys) -> [UInt8] {
    var bytes = keys.fleet
    bytes.append(number: keys.epoch)
    return bytes + plaintext
  }

  /// That of a collection; nil if it is not shared.
  func collection(_ folder: [UInt8]) -> CollectionHead? { collections.first { $0.folder == folder } }

  /// Opens a head, and checks that a member who may write has signed it, and each collection's a member who may write there.
  ///
  /// - Parameter authority: SHA-256 of the object with the members' version.
  init(opening bytes: [UInt8], _ keys: FleetKeys, members: Members, authority: [UInt8]) throws {
    let object = Self.object
    let (head, signed, signature) = try Format.read(bytes, object) { reader in
      let clearVersion = try reader.number(UInt32.self)
      return try keys.withOpened(bytes, behind: Self.clearByteCount, for: .head) { reader in
        let plaintext = try reader.array(reader.count - Ed25519.signatureByteCount)
        let signature = try reader.array(Ed25519.signatureByteCount)
        let head = try plaintext.withUnsafeBytes { plaintext in
          var reader = ByteReader(plaintext)
          return try Head(&reader)
        }
        guard head.membersVersion == clearVersion else {
          throw MalformedObject(reason: "its parts contradict each other")
        }
        return (head, Self.signedBytes(plaintext, keys), signature)
      }
    }
    func damaged(_ reason: String) -> FleetError { .damaged(object: object, reason: reason) }
    guard head.membersVersion == members.version, ConstantTime.isEqual(head.authority, authority) else {
      throw damaged("it refers to another version of the members")
    }
    guard let author = members[head.author] else { throw damaged("its author is not a member") }
    guard author.mayWrite else { throw damaged("its author, \(author.name), may not write") }
    guard try SignedObject.head.isValid(signature, of: signed, by: author.signingKey) else {
      throw damaged("it was not signed by \(author.name)")
    }
    guard head.collections.map(\.folder) == members.shared.map(\.folder) else {
      throw damaged("its author, \(author.name), has other collections than the members")
    }
    for collection in head.collections {
      // Who may not write in a collection has to leave it as it is.
      guard try collection.isSigned(in: keys.fleet, by: members) else {
        throw damaged("its author, \(author.name), has changed a collection of others")
      }
    }
    self = head
  }

  init(
    number: UInt64, time: Int64, author: MemberID, membersVersion: UInt32, authority: [UInt8],
    collections: [CollectionHead], log: HeadLog = HeadLog(), pieces: [PieceReference] = []
  ) {
    (self.number, self.time, self.author) = (number, time, author)
    (self.membersVersion, self.authority) = (membersVersion, authority)
    (self.collections, self.log, self.pieces) = (collections, log, pieces)
  }

  private var encoded: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(number: number)
    bytes.append(number: time)
    bytes += author.bytes
    bytes.append(number: membersVersion)
    bytes += authority
    bytes.append(number: UInt16(collections.count))
    for collection in collections { bytes += collection.bytes }
    bytes += log.bytes
    bytes.append(number: UInt16(pieces.count))
    for piece in pieces { bytes += piece.id + piece.digest }
    return bytes
  }

  private init(_ reader: inout ByteReader) throws {
    number = try reader.number()
    time = try reader.number()
    author = MemberID(bytes: try reader.array(MemberID.byteCount))
    membersVersion = try reader.number()
    authority = try reader.array(SHA256.byteCount)
    collections = []
    for _ in 0..<(try reader.number(UInt16.self)) { collections.append(try CollectionHead(&reader)) }
    log = try HeadLog(&reader)
    // Each commit has a higher number than the one before.
    let numbers = collections.allSatisfy { [number] in $0.horizon < $0.number && $0.number <= number }
    guard number <= Record.maximumCounter, numbers, log.count < number else {
      throw MalformedObject(reason: "its numbers are out of range")
    }
    let pieceCount = try reader.number(UInt16.self)
    guard pieceCount <= Self.maximumPieceCount else { throw MalformedObject(reason: "it has too many pieces") }
    for _ in 0..<pieceCount {
      pieces.append(
        PieceReference(id: try reader.array(Self.pieceIDByteCount), digest: try reader.array(SHA256.byteCount)))
    }
    try reader.end()
  }
}
