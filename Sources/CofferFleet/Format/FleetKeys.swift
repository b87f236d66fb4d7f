import CofferCrypto

/// The keys of a member: what all members have, and those of its collections.
final class FleetKeys {
  static let keyByteCount = 32

  let secrets: Secrets
  /// The folder of the pieces of this epoch.
  let folder: String
  /// Those of this member's collections, in the order of their folders.
  let collections: [CollectionKeys]
  private let byFolder: [[UInt8]: CollectionKeys]
  private let head: Cipher
  private let members: Cipher

  /// What the keys are made of; other threads need ciphers of their own.
  struct Secrets: Sendable {
    var fleet: [UInt8]
    var epoch: UInt32
    /// That of the epoch.
    var folder: [UInt8]
    /// The key that all members have.
    var fleetKey: SecretBytes
    var collections: [Collection] = []

    struct Collection: Sendable {
      var folder: [UInt8]
      var name: String
      /// Whether it is sealed in the fleet, which is sealed with its name.
      var isSealed = false
      var key: SecretBytes
    }
  }

  /// The purpose of a key that all members have.
  enum Purpose {
    case head, members
  }

  var fleet: [UInt8] { secrets.fleet }
  var epoch: UInt32 { secrets.epoch }

  init(_ secrets: Secrets) throws {
    self.secrets = secrets
    folder = secrets.folder.hex
    collections = try secrets.collections.map { try CollectionKeys($0, secrets.fleet) }
    byFolder = Dictionary(collections.map { ($0.folder, $0) }, uniquingKeysWith: { first, _ in first })
    var place: [UInt8] = []
    place.append(number: secrets.epoch)
    head = try Cipher("head", secrets.fleetKey, secrets.fleet, place)
    members = try Cipher("members", secrets.fleetKey, secrets.fleet, place)
  }

  // MARK: Records

  static let nameByteCount = 20
  /// The size of the place of a record: its folder, which is that of its collection's key, and its name.
  static let placeByteCount = Authority.folderByteCount + nameByteCount

  /// The keys of a collection; nil if this member does not have it.
  func collection(named name: String) -> CollectionKeys? {
    collections.first { $0.name.utf8.elementsEqual(name.utf8) }
  }

  /// The keys of the collection with a record; nil if this member does not have it.
  func collection(at place: [UInt8]) -> CollectionKeys? { byFolder[Self.folder(of: place)] }

  /// The key of the collection with a folder, which an admin has of each.
  func key(of folder: [UInt8]) throws -> SecretBytes {
    guard let collection = secrets.collections.first(where: { $0.folder == folder }) else {
      throw FleetError.notAllowed(role: .reader)
    }
    return collection.key
  }

  func has(folder: [UInt8]) -> Bool { byFolder[folder] != nil }

  static func folder(of place: [UInt8]) -> [UInt8] { Array(place.prefix(Authority.folderByteCount)) }

  /// The object of a record.
  static func object(_ place: [UInt8]) -> String {
    "r/\(folder(of: place).hex)/\(Array(place.dropFirst(Authority.folderByteCount)).hex)"
  }

  /// The place of the record of an object; nil if it is not one of this member's collections.
  func place(ofObject object: String) -> [UInt8]? {
    guard object.utf8.count == Self.objectNameByteCount, object.hasPrefix("r/") else { return nil }
    let (folder, name) = (
      object.dropFirst(2).prefix(2 * Authority.folderByteCount), object.suffix(2 * Self.nameByteCount)
    )
    guard let folder = [UInt8](hex: folder), has(folder: folder), let name = [UInt8](hex: name) else { return nil }
    let place = folder + name
    return place.count == Self.placeByteCount ? place : nil
  }

  private static let objectNameByteCount = 2 + 2 * Authority.folderByteCount + 1 + 2 * nameByteCount

  // MARK: Sealing

  /// Appends the sealed bytes to `object`, whose existing bytes are authenticated with them.
  func seal(_ plaintext: UnsafeRawBufferPointer, for purpose: Purpose, into object: inout [UInt8]) throws {
    try cipher(purpose).seal(plaintext, into: &object)
  }

  /// Opens the bytes after the first `count` bytes of an object.
  func withOpened<Result>(
    _ object: [UInt8], behind count: Int, for purpose: Purpose, _ body: (inout ByteReader) throws -> Result
  ) throws -> Result {
    try cipher(purpose).withOpened(object, behind: count, body)
  }

  private func cipher(_ purpose: Purpose) -> Cipher {
    switch purpose {
    case .head: head
    case .members: members
    }
  }
}

/// The keys of a shared collection.
final class CollectionKeys {
  /// Where its records are; another key has another one.
  let folder: [UInt8]
  let name: String
  private let nameKey: SecretBytes
  private let records: Cipher

  init(_ secrets: FleetKeys.Secrets.Collection, _ fleet: [UInt8]) throws {
    (folder, name) = (secrets.folder, secrets.name)
    nameKey = try HKDF.deriveKey(
      from: secrets.key, salt: fleet, info: Array("coffer fleet v1 names".utf8), count: FleetKeys.keyByteCount)
    records = try Cipher("records", secrets.key, fleet, folder)
  }

  /// The place of a setting's record, which reveals the setting only with the key.
  func place(of key: String) throws -> [UInt8] { try place(of: key, []) }

  /// The place of the record of a declaration.
  func place(ofDeclarationOf key: String) throws -> [UInt8] { try place(of: key, Array("declaration".utf8)) }

  private func place(of key: String, _ purpose: [UInt8]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(text: name)
    bytes.append(text: key)
    bytes += purpose
    let code = try bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: nameKey) }
    return folder + code.prefix(FleetKeys.nameByteCount)
  }

  func seal(_ plaintext: UnsafeRawBufferPointer, at place: [UInt8], into object: inout [UInt8]) throws {
    try records.seal(plaintext, at: Self.name(of: place), into: &object)
  }

  func withOpened<Result>(
    _ object: [UInt8], behind count: Int, at place: [UInt8], _ body: (inout ByteReader) throws -> Result
  ) throws -> Result {
    try records.withOpened(object, behind: count, at: Self.name(of: place), body)
  }

  static func name(of place: [UInt8]) -> [UInt8] { Array(place.dropFirst(Authority.folderByteCount)) }
}

extension SecretBytes {
  /// One secret after another.
  convenience init(joining secrets: [SecretBytes]) {
    self.init(count: secrets.reduce(0) { $0 + $1.count }) { bytes in
      var start = 0
      for secret in secrets {
        secret.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[start...]).copyMemory(from: $0) }
        start += secret.count
      }
    }
  }
}

/// Seals and opens for one purpose.
struct Cipher {
  private let cipher: XAES256GCM
  private let additionalData: [UInt8]

  /// - Parameter place: What the key belongs to: the epoch, or the folder of a collection.
  init(_ purpose: String, _ key: SecretBytes, _ fleet: [UInt8], _ place: [UInt8]) throws {
    let label = Array("coffer fleet v1 \(purpose)".utf8)
    cipher = try XAES256GCM(
      key: HKDF.deriveKey(from: key, salt: fleet, info: label, count: FleetKeys.keyByteCount))
    additionalData = label + fleet + place
  }

  /// Appends the sealed bytes to `object`, whose existing bytes are authenticated with them.
  func seal(_ plaintext: UnsafeRawBufferPointer, at place: [UInt8] = [], into object: inout [UInt8]) throws {
    try cipher.seal(plaintext, additionalData: additionalData + place + object, appendingTo: &object)
  }

  /// Opens the bytes after the first `count` bytes of an object.
  func withOpened<Result>(
    _ object: [UInt8], behind count: Int, at place: [UInt8] = [], _ body: (inout ByteReader) throws -> Result
  ) throws -> Result {
    guard object.count >= count else { throw MalformedObject(reason: "it is truncated") }
    let data = additionalData + place + object.prefix(count)
    return try cipher.withOpened(object.dropFirst(count), additionalData: data) { bytes in
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
  case head, collection, authority, record, join

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
