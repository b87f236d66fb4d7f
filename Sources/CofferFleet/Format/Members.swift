import Coffer
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
    /// The collections that it has the keys of.
    var access = CollectionAccess.all
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

  /// All that are shared, in the order of their folders.
  private(set) var shared: [SharedCollection]
  /// The names of those that this member has, in the order of their bytes.
  private(set) var collections: [String]
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

  /// Removes a member, and gives its collections other keys.
  mutating func remove(_ member: Member) throws {
    members.removeAll { $0.id == member.id }
    try renew { member.access.includes($0.folder) }
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

  func shares(_ collection: String) -> Bool { shared(collection) != nil }

  /// A collection that this member has.
  func shared(_ name: String) -> SharedCollection? {
    shared.first { $0.name.map { $0.utf8.elementsEqual(name.utf8) } ?? false }
  }

  func member(named name: String) -> Member? { members.first { $0.name.utf8.elementsEqual(name.utf8) } }

  var retention: Int64 { Int64(retentionDays) * 86_400_000 }

  static func check(name: String) throws {
    let isPlain = name.unicodeScalars.allSatisfy {
      $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
    }
    guard (1...maximumNameByteCount).contains(name.utf8.count), isPlain else { throw FleetError.badName(name) }
  }

  init(version: UInt32, fleetName: String, retentionDays: UInt32, shared: [SharedCollection], members: [Member]) {
    (self.version, self.fleetName, self.retentionDays) = (version, fleetName, retentionDays)
    (self.shared, self.collections, self.members) = ([], [], members)
    set(shared)
  }

  // MARK: Collections

  /// A head has something of each.
  static let maximumCollectionCount = 100

  /// With the names of the collections of a member.
  func named(_ collections: [FleetKeys.Secrets.Collection]) -> Members {
    var named = self
    named.set(
      shared.map { shared in
        let own = collections.first { $0.folder == shared.folder }
        return SharedCollection(
          folder: shared.folder, name: own?.name, since: shared.since, isSealed: own?.isSealed ?? false)
      })
    return named
  }

  private mutating func set(_ shared: [SharedCollection]) {
    self.shared = shared.sorted { $0.folder.lexicographicallyPrecedes($1.folder) }
    collections = shared.compactMap(\.name).map(ByteString.init).sorted().map(\.string)
  }

  /// Shares these collections from a version on, and no others.
  ///
  /// Who had another one does not have it if it is shared again: it has another key then.
  ///
  /// - Parameter areSealed: Says of a collection that was not shared whether it is sealed in the fleet.
  mutating func share(_ names: [String], from version: UInt32, areSealed: (String) -> Bool = { _ in false }) throws {
    guard names.count <= Self.maximumCollectionCount else {
      throw FleetError.tooManyCollections(limit: Self.maximumCollectionCount)
    }
    set(try names.map { try shared($0) ?? SharedCollection(name: $0, since: version, isSealed: areSealed($0)) })
    let folders = shared.map(\.folder)
    for index in members.indices { members[index].access.formIntersection(folders) }
  }

  /// Seals collections in the fleet, or unseals them there.
  ///
  /// - Throws: ``FleetError/collectionNotShared(_:)``.
  mutating func setSealed(_ isSealed: Bool, _ names: [String]) throws {
    for name in names where shared(name) == nil { throw FleetError.collectionNotShared(name) }
    let names = Set(names.map(ByteString.init))
    set(
      shared.map { collection in
        var collection = collection
        if let name = collection.name, names.contains(ByteString(name)) { collection.isSealed = isSealed }
        return collection
      })
  }

  /// The names of those that are sealed in the fleet.
  var sealedCollections: [String] { collections.filter { shared($0)?.isSealed ?? false } }

  /// Gives collections another key.
  mutating func renew(where isRenewed: (SharedCollection) -> Bool) throws {
    for collection in shared where isRenewed(collection) {
      var new = collection
      new.folder = try SharedCollection.newFolder()
      set(shared.map { $0.folder == collection.folder ? new : $0 })
      for index in members.indices { members[index].access.replace(collection.folder, by: new.folder) }
    }
  }

  /// Those with these names.
  ///
  /// - Throws: ``FleetError/collectionNotShared(_:)``.
  func access(to names: [String]) throws -> CollectionAccess {
    let folders = try names.map { name in
      guard let shared = shared(name) else { throw FleetError.collectionNotShared(name) }
      return shared.folder
    }
    return .some(Set(folders))
  }

  /// The names of a member's collections, as far as this one has them.
  func collections(of member: Member) -> [String] {
    collections.filter { name in shared(name).map { member.access.includes($0.folder) } ?? false }
  }

  /// The collections that were not shared in a version, or not without a break since.
  func collections(newSince version: UInt32) -> [String] {
    collections.filter { name in shared(name).map { $0.since > version } ?? false }
  }

  /// The collections that are new for this member.
  func collections(newSince earlier: Members) -> [String] {
    collections.filter { name in shared(name).map { $0.since > earlier.version } ?? false || !earlier.shares(name) }
  }
}

/// A collection that is shared.
struct SharedCollection: Equatable {
  /// The folder of its records; another key has another one.
  var folder: [UInt8]
  /// Nil if this member does not have it.
  var name: String?
  /// The version from which on it has been shared without a break.
  var since: UInt32
  /// Whether it is sealed in the fleet: a host keeps its values sealed with its own vault, or does not take them.
  var isSealed: Bool

  static func newFolder() throws -> [UInt8] { try RandomSource.bytes(count: Authority.folderByteCount) }

  init(folder: [UInt8], name: String?, since: UInt32, isSealed: Bool = false) {
    (self.folder, self.name, self.since, self.isSealed) = (folder, name, since, isSealed)
  }

  /// A new one.
  init(name: String, since: UInt32, isSealed: Bool) throws {
    self.init(folder: try Self.newFolder(), name: name, since: since, isSealed: isSealed)
  }
}

/// Which collections a member has the keys of.
enum CollectionAccess: Hashable {
  /// All, and those that are shared later.
  case all
  /// Those with these folders.
  case some(Set<[UInt8]>)

  func includes(_ folder: [UInt8]) -> Bool {
    switch self {
    case .all: true
    case .some(let folders): folders.contains(folder)
    }
  }

  mutating func formIntersection(_ folders: [[UInt8]]) {
    if case .some(let own) = self { self = .some(own.intersection(folders)) }
  }

  mutating func replace(_ folder: [UInt8], by new: [UInt8]) {
    guard case .some(var folders) = self, folders.remove(folder) != nil else { return }
    folders.insert(new)
    self = .some(folders)
  }
}
