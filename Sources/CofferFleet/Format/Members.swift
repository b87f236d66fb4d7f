import CofferCrypto

/// The role of a member of a fleet.
public enum FleetRole: UInt8, Sendable, Hashable, CaseIterable, CustomStringConvertible {
  /// Receives settings.
  case reader = 1
  /// Also sets settings.
  case writer = 2
  /// Also manages the members.
  case admin = 3

  /// Whether others accept its changes.
  public var mayWrite: Bool { self != .reader }

  /// The role's name: `reader`, `writer` or `admin`.
  public var description: String {
    switch self {
    case .reader: "reader"
    case .writer: "writer"
    case .admin: "admin"
    }
  }
}

/// Whether a member has come.
public enum FleetStanding: UInt8, Sendable, Hashable, CaseIterable, CustomStringConvertible {
  /// It has its invitation. A host that has used it only reads until an admin's host has seen that.
  case invited = 0
  /// One host has used the invitation, which is void since, and has keys of its own.
  case admitted = 1
  /// Any number of hosts read with its invitation.
  case many = 2

  /// The standing's name: `invited`, `admitted` or `many`.
  public var description: String {
    switch self {
    case .invited: "invited"
    case .admitted: "admitted"
    case .many: "many"
    }
  }
}

/// The members of a fleet, and what they share.
struct Members: Equatable {
  static let object = "members"
  static let fleetIDByteCount = 16
  static let maximumNameByteCount = 64

  struct Member: Equatable {
    var id: MemberID
    var name: String
    var role: FleetRole
    var standing: FleetStanding
    /// Its Ed25519 and X25519 keys.
    var signingKey: [UInt8]
    var publicKey: [UInt8]
    /// When it was invited, and when the invitation expires (0 for never), in milliseconds since 1970.
    var created: Int64
    var joinsBefore: Int64 = 0

    /// Whether others accept its changes.
    var mayWrite: Bool { role.mayWrite && standing == .admitted }
    /// Whether others accept its changes of the members.
    var mayManage: Bool { role == .admin && standing == .admitted }

    func isExpired(at time: Int64) -> Bool { joinsBefore != 0 && joinsBefore <= time }
  }

  var version: UInt32
  var fleetName: String
  /// How long a removal is remembered.
  var retentionDays: UInt32
  /// How old the last commit may be, in seconds; 0 for any age.
  var greatestAge: UInt32 = 0

  static func greatestAge(_ age: Duration?) -> UInt32 {
    age.map { UInt32(clamping: max(1, $0.components.seconds)) } ?? 0
  }

  /// The collections that are shared, in the order of their bytes.
  private(set) var collections: [String]
  /// For each of them, the version from which on it has been shared without a break.
  private(set) var sharedSince: [UInt32]
  var members: [Member]
  /// Those who may have written records, and are members no longer.
  var former: [Former] = []

  struct Former: Equatable {
    var id: MemberID
    var name: String
    /// Its Ed25519 key.
    var signingKey: [UInt8]
  }

  /// A member, or a former one, whose records others accept.
  func author(_ id: MemberID) -> (name: String, signingKey: [UInt8])? {
    if let member = self[id] { return member.mayWrite ? (member.name, member.signingKey) : nil }
    return former.first { $0.id == id }.map { ($0.name, $0.signingKey) }
  }

  mutating func remove(_ member: Member) {
    members.removeAll { $0.id == member.id }
    if member.mayWrite {
      former.append(Former(id: member.id, name: member.name, signingKey: member.signingKey))
    }
  }

  /// Lists the keys of the host that has used a member's invitation.
  mutating func admit(_ request: JoinRequest) {
    guard let index = members.firstIndex(where: { $0.id == request.member && $0.standing == .invited }) else { return }
    members[index].standing = .admitted
    (members[index].signingKey, members[index].publicKey) = (request.signingKey, request.publicKey)
  }

  /// The keys that may sign the next version, in the order of the members.
  var adminKeys: [[UInt8]] { members.filter(\.mayManage).map(\.signingKey) }

  subscript(id: MemberID) -> Member? { members.first { $0.id == id } }

  func shares(_ collection: String) -> Bool { collections.contains { $0.utf8.elementsEqual(collection.utf8) } }

  func member(named name: String) -> Member? { members.first { $0.name.utf8.elementsEqual(name.utf8) } }

  var retention: Int64 { Int64(retentionDays) * 86_400_000 }

  static func check(name: String) throws {
    let isPlain = name.unicodeScalars.allSatisfy {
      $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
    }
    guard (1...maximumNameByteCount).contains(name.utf8.count), isPlain else { throw FleetError.badName(name) }
  }

  // MARK: Bytes

  private static let wrappedByteCount = FleetKeys.fleetKeyByteCount + XAES256GCM.overheadByteCount

  /// The object: the fleet key, wrapped for each member, then the list of members, sealed under that key.
  func sealed(_ keys: FleetKeys, fleetKey: SecretBytes) throws -> [UInt8] {
    var bytes = [Format.version]
    bytes.append(number: version)
    let ephemeral = try SecretBytes.random(count: X25519.keyByteCount)
    let ephemeralKey = try X25519.publicKey(of: ephemeral)
    bytes += ephemeralKey
    bytes.append(number: UInt16(members.count))
    for member in members {
      bytes += member.id.bytes
      let agreed = try X25519.agree(ephemeral, with: member.publicKey)
      let wrapping = try Self.wrappingKey(agreed, ephemeralKey, member.publicKey, keys.fleet)
      let data = Self.additionalData(keys.fleet, version, keys.epoch, member.id)
      try fleetKey.withUnsafeBytes {
        try XAES256GCM(key: wrapping).seal($0, additionalData: data, appendingTo: &bytes)
      }
    }
    // The key is authenticated by the list that it opens, the whole object by the authority's signature.
    let body = self.body
    var sealed = Array(bytes.prefix(5))
    try body.withUnsafeBytes { try keys.seal($0, for: .members, into: &sealed) }
    return bytes + sealed.dropFirst(5)
  }

  /// Opens the fleet key with a member's private key.
  ///
  /// - Throws: ``FleetError/removed`` if no key is wrapped for the member.
  static func fleetKey(in bytes: [UInt8], of authority: Authority, for identity: Identity) throws -> SecretBytes {
    try checkDigest(bytes, authority)
    return try Format.read(bytes, object) { reader in
      let version = try reader.number(UInt32.self)
      let ephemeralKey = try reader.array(X25519.keyByteCount)
      for _ in 0..<(try reader.number(UInt16.self)) {
        let id = try reader.array(MemberID.byteCount)
        let wrapped = try reader.array(wrappedByteCount)
        guard id == identity.member.bytes else { continue }
        guard let agreed = try? X25519.agree(identity.agreementKey, with: ephemeralKey) else {
          throw MalformedObject(reason: "its ephemeral key is invalid")
        }
        let wrapping = try wrappingKey(agreed, ephemeralKey, identity.publicKey, authority.fleet)
        let data = additionalData(authority.fleet, version, authority.epoch, identity.member)
        return try XAES256GCM(key: wrapping).open(
          Array(wrapped.dropFirst(XAES256GCM.nonceByteCount)), nonce: Array(wrapped.prefix(XAES256GCM.nonceByteCount)),
          additionalData: data)
      }
      throw FleetError.removed
    }
  }

  private static func checkDigest(_ bytes: [UInt8], _ authority: Authority) throws {
    guard ConstantTime.isEqual(try bytes.digest, authority.members) else {
      throw FleetError.damaged(object: object, reason: "it does not match what an admin signed")
    }
  }

  private static func wrappingKey(
    _ agreed: SecretBytes, _ ephemeralKey: [UInt8], _ publicKey: [UInt8], _ fleet: [UInt8]
  ) throws -> SecretBytes {
    try HKDF.deriveKey(
      from: agreed, salt: fleet, info: Array("coffer fleet v1 wrapping".utf8) + ephemeralKey + publicKey, count: 32)
  }

  private static func additionalData(
    _ fleet: [UInt8], _ version: UInt32, _ epoch: UInt32, _ member: MemberID
  ) -> [UInt8] {
    var data = Array("coffer fleet v1 wrapping".utf8) + fleet
    data.append(number: version)
    data.append(number: epoch)
    return data + member.bytes
  }

  /// Opens the list of members.
  init(opening bytes: [UInt8], _ keys: FleetKeys, of authority: Authority) throws {
    let object = Self.object
    try Self.checkDigest(bytes, authority)
    let members = try Format.read(bytes, object) { reader in
      let version = try reader.number(UInt32.self)
      _ = try reader.bytes(X25519.keyByteCount)
      var ids: [MemberID] = []
      for _ in 0..<(try reader.number(UInt16.self)) {
        ids.append(MemberID(bytes: try reader.array(MemberID.byteCount)))
        _ = try reader.bytes(Self.wrappedByteCount)
      }
      let sealed = Array(bytes.prefix(5)) + Array(reader.rest())
      let members = try keys.withOpened(sealed, behind: 5, for: .members) { try Members(version, &$0) }
      guard members.members.map(\.id) == ids else { throw MalformedObject(reason: "its parts contradict each other") }
      return members
    }
    guard members.version == authority.version, members.adminKeys == authority.admins else {
      throw FleetError.damaged(object: object, reason: "it does not match its authority")
    }
    self = members
  }

  init(version: UInt32, fleetName: String, retentionDays: UInt32, collections: [String], members: [Member]) {
    (self.version, self.fleetName, self.retentionDays) = (version, fleetName, retentionDays)
    (self.collections, self.members) = (collections, members)
    sharedSince = Array(repeating: version, count: collections.count)
  }

  /// Shares these collections, in the order of their bytes, from a version on.
  ///
  /// - Returns: Whether one that was shared is no longer.
  mutating func share(_ names: [String], from version: UInt32) -> Bool {
    let dropsSome = !collections.allSatisfy { name in names.contains { $0.utf8.elementsEqual(name.utf8) } }
    sharedSince = names.map { name in
      collections.firstIndex { $0.utf8.elementsEqual(name.utf8) }.map { sharedSince[$0] } ?? version
    }
    collections = names
    return dropsSome
  }

  /// The collections that were not shared in a version, or not without a break since.
  func collections(newSince version: UInt32) -> [String] {
    zip(collections, sharedSince).filter { $1 > version }.map(\.0)
  }

  private var body: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(text: fleetName)
    bytes.append(number: retentionDays)
    bytes.append(number: greatestAge)
    bytes.append(number: UInt16(collections.count))
    for (collection, since) in zip(collections, sharedSince) {
      bytes.append(text: collection)
      bytes.append(number: since)
    }
    bytes.append(number: UInt16(members.count))
    for member in members {
      bytes += member.id.bytes
      bytes.append(member.role.rawValue)
      bytes.append(member.standing.rawValue)
      bytes += member.signingKey + member.publicKey
      bytes.append(number: member.created)
      bytes.append(number: member.joinsBefore)
      bytes.append(text: member.name)
    }
    bytes.append(number: UInt16(former.count))
    for member in former {
      bytes += member.id.bytes + member.signingKey
      bytes.append(text: member.name)
    }
    return bytes
  }

  private init(_ version: UInt32, _ reader: inout ByteReader) throws(MalformedObject) {
    self.version = version
    fleetName = try reader.text()
    retentionDays = try reader.number()
    greatestAge = try reader.number()
    (collections, sharedSince) = ([], [])
    for _ in 0..<(try reader.number(UInt16.self)) {
      collections.append(try reader.text())
      sharedSince.append(try reader.number())
    }
    guard sharedSince.allSatisfy({ 1...version ~= $0 }) else {
      throw MalformedObject(reason: "its numbers are out of range")
    }
    members = []
    for _ in 0..<(try reader.number(UInt16.self)) {
      let id = MemberID(bytes: try reader.array(MemberID.byteCount))
      guard let role = FleetRole(rawValue: try reader.number()) else {
        throw MalformedObject(reason: "a member has an unknown role")
      }
      guard let standing = FleetStanding(rawValue: try reader.number()), standing != .many || role == .reader else {
        throw MalformedObject(reason: "a member has an unknown standing")
      }
      let (signingKey, publicKey) = (
        try reader.array(Ed25519.publicKeyByteCount), try reader.array(X25519.keyByteCount)
      )
      let (created, joinsBefore) = (try reader.number(Int64.self), try reader.number(Int64.self))
      members.append(
        Member(
          id: id, name: try reader.text(), role: role, standing: standing, signingKey: signingKey, publicKey: publicKey,
          created: created, joinsBefore: joinsBefore))
    }
    for _ in 0..<(try reader.number(UInt16.self)) {
      let id = MemberID(bytes: try reader.array(MemberID.byteCount))
      let signingKey = try reader.array(Ed25519.publicKeyByteCount)
      former.append(Former(id: id, name: try reader.text(), signingKey: signingKey))
    }
    guard Set(members.map(\.id) + former.map(\.id)).count == members.count + former.count else {
      throw MalformedObject(reason: "it lists a member twice")
    }
    try reader.end()
  }
}
