import CofferCrypto

/// The keys of an epoch, derived from the fleet key.
final class FleetKeys {
  static let fleetKeyByteCount = 32

  let fleet: [UInt8]
  let epoch: UInt32
  /// The folder of this epoch's records.
  let folder: String
  private let nameKey: SecretBytes
  private let ciphers: [Purpose: (cipher: XAES256GCM, additionalData: [UInt8])]

  enum Purpose: String, CaseIterable {
    case records, head, members
  }

  init(fleetKey: SecretBytes, fleet: [UInt8], epoch: UInt32, folder: [UInt8]) throws {
    func derive(_ purpose: String) throws -> SecretBytes {
      try HKDF.deriveKey(from: fleetKey, salt: fleet, info: Array("coffer fleet v1 \(purpose)".utf8), count: 32)
    }
    self.fleet = fleet
    self.epoch = epoch
    self.folder = folder.hex
    nameKey = try derive("names")
    ciphers = try Dictionary(
      uniqueKeysWithValues: Purpose.allCases.map { purpose in
        var data = Array("coffer fleet v1 \(purpose.rawValue)".utf8) + fleet
        data.append(number: epoch)
        return (purpose, (try XAES256GCM(key: derive(purpose.rawValue)), data))
      })
  }

  // MARK: Names

  static let nameByteCount = 20

  /// The name of a record, which reveals its setting only with the key.
  func name(of key: String, in collection: String) throws -> [UInt8] { try name(of: key, in: collection, []) }

  /// The name of the record of a declaration.
  func name(ofDeclarationOf key: String, in collection: String) throws -> [UInt8] {
    try name(of: key, in: collection, Array("declaration".utf8))
  }

  private func name(of key: String, in collection: String, _ purpose: [UInt8]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(text: collection)
    bytes.append(text: key)
    bytes += purpose
    return Array(try bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: nameKey) }.prefix(Self.nameByteCount))
  }

  /// The object of a record.
  func object(_ name: [UInt8]) -> String { "r/\(folder)/\(name.hex)" }

  /// The record of an object; nil if it is not a record of this epoch.
  func name(ofObject object: String) -> [UInt8]? {
    guard object.hasPrefix("r/\(folder)/") else { return nil }
    let name = [UInt8](hex: object.dropFirst(folder.utf8.count + 3))
    return name?.count == Self.nameByteCount ? name : nil
  }

  /// The record of an object that these keys have sealed.
  func name(of object: CarrierObject) -> [UInt8] { name(ofObject: object.name) ?? [] }

  // MARK: Sealing

  /// Appends the sealed bytes to `object`, whose existing bytes are authenticated with them.
  func seal(
    _ plaintext: UnsafeRawBufferPointer, for purpose: Purpose, at place: [UInt8] = [], into object: inout [UInt8]
  ) throws {
    let (cipher, data) = ciphers[purpose]!
    try cipher.seal(plaintext, additionalData: data + place + object, appendingTo: &object)
  }

  /// Opens the bytes after the first `count` bytes of an object.
  func withOpened<Result>(
    _ object: [UInt8], behind count: Int, for purpose: Purpose, at place: [UInt8] = [],
    _ body: (inout ByteReader) throws -> Result
  ) throws -> Result {
    guard object.count >= count else { throw MalformedObject(reason: "it is truncated") }
    let (cipher, data) = ciphers[purpose]!
    let place = place + Array(object.prefix(count))
    return try cipher.withOpened(object.dropFirst(count), additionalData: data + place) { bytes in
      var reader = ByteReader(bytes)
      return try body(&reader)
    }
  }
}

/// The identity of a member: its private keys, derived from one seed.
struct Identity: Sendable {
  static let seedByteCount = 32

  let member: MemberID
  let seed: SecretBytes
  let signingSeed: SecretBytes
  let agreementKey: SecretBytes
  let signingKey: [UInt8]
  let publicKey: [UInt8]

  init(member: MemberID, seed: SecretBytes, fleet: [UInt8]) throws {
    func derive(_ purpose: String) throws -> SecretBytes {
      try HKDF.deriveKey(
        from: seed, salt: fleet + member.bytes, info: Array("coffer fleet v1 \(purpose)".utf8), count: 32)
    }
    self.member = member
    self.seed = seed
    signingSeed = try derive("signing")
    agreementKey = try derive("agreement")
    signingKey = try Ed25519.publicKey(seed: signingSeed)
    publicKey = try X25519.publicKey(of: agreementKey)
  }

  /// Creates the identity of a new member.
  static func make(fleet: [UInt8]) throws -> Identity {
    try Identity(
      member: MemberID(bytes: RandomSource.bytes(count: MemberID.byteCount)), seed: .random(count: seedByteCount),
      fleet: fleet)
  }

  /// Signs bytes for one purpose.
  func sign(_ bytes: [UInt8], as purpose: SignedObject) throws -> [UInt8] {
    try Ed25519.sign(purpose.message(bytes), seed: signingSeed)
  }
}

/// The purpose of a signature, which is valid for no other one.
enum SignedObject: String {
  case head, authority, record, join

  func message(_ bytes: [UInt8]) -> [UInt8] { Array("coffer fleet v1 \(rawValue) signature".utf8) + bytes }

  func isValid(_ signature: [UInt8], of bytes: [UInt8], by key: [UInt8]) throws -> Bool {
    try Ed25519.isValid(signature, of: message(bytes), publicKey: key)
  }
}

/// The random ID of a member.
struct MemberID: Hashable, Comparable, Sendable {
  static let byteCount = 16

  let bytes: [UInt8]

  static func < (a: Self, b: Self) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}
