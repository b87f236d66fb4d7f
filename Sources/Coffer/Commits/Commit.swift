#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The changes of a commit, by key.
///
/// ```swift
/// let commits = try connection.beginLongLivedReadTransaction()
/// if commits.contains(where: { $0.concerns(collection: "ui") }) { reload() }
/// ```
public struct Commit: Sendable {
  /// The commit's place in the history of the store; of merged commits, the last one's.
  ///
  /// ``Reading/changes(since:)`` continues there.
  public let position: CommitPosition
  /// The number of the commit; of merged commits, the last one's.
  public var number: CommitNumber { position.number }
  /// Where the commit came from.
  public let origin: ChangeOrigin
  /// When the commit was made, by the clock of its writer, to the millisecond; nil if it is no longer known.
  public let time: Date?
  /// Who made the commit; nil if unknown, if it removed expired items, or if merged commits have different authors.
  public let author: Author?
  /// What the commit did besides changing keys: `history off for web`, `slot 2 added`; usually nothing.
  public let actions: [CommitAction]
  /// The objects that the transaction attached; only in the process of the commit.
  package let attachments: [any Sendable]
  /// Whether everything was removed, or the changes are unknown.
  let isEverything: Bool
  /// By the name of the collection.
  let collections: [ByteString: ChangeSet.CollectionChange]
  /// The commit's row in the change log; nil for merged commits, and for commits no longer in the log.
  let identity: CommitIdentity?
  /// How often the store was replaced or rolled back while this database was listened to; numbers are only comparable
  /// within one generation.
  package var generation = 0
  /// With what the feed has read it; nil if it did not.
  var delivery: Delivery?
  /// Whether it removed a collection whose name is unknown here.
  private let removesUnnamed: Bool

  /// With what a commit was read, for those who follow the store commit by commit.
  struct Delivery {
    /// Which of the successive stores at this path it is of.
    let storeGeneration: Int
    /// The commit counter's value before the log was read, up to this commit; nil if others followed.
    let count: UInt64?
  }

  init(
    position: CommitPosition, origin: ChangeOrigin, time: Date? = nil, author: Author? = nil,
    actions: [CommitAction] = [], attachments: [any Sendable] = [], isEverything: Bool,
    collections: [ByteString: ChangeSet.CollectionChange] = [:], identity: CommitIdentity? = nil,
    removesUnnamed: Bool = false
  ) {
    self.position = position
    self.origin = origin
    self.time = time
    self.author = author
    self.actions = actions
    self.attachments = attachments
    self.isEverything = isEverything
    self.collections = collections
    self.identity = identity
    self.removesUnnamed = removesUnnamed
  }

  /// Stands for commits that are no longer in the change log: anything may have changed.
  static func unknown(through position: CommitPosition) -> Commit {
    Commit(position: position, origin: .several, isEverything: true)
  }

  /// The same commit for a listener that may have seen a collection whose name is unknown here: any may have been removed.
  var withUnnamedRemovalOfAll: Commit {
    guard removesUnnamed else { return self }
    var commit = Commit(
      position: position, origin: origin, time: time, author: author, actions: actions, attachments: attachments,
      isEverything: true,
      collections: collections, identity: identity)
    commit.generation = generation
    commit.delivery = delivery
    return commit
  }

  // MARK: Queries

  /// The names of the collections that changed, if known, in the order of their bytes.
  public var changedCollections: [String] { collections.keys.sorted().map(\.string) }

  /// Whether other keys than those listed may have changed, too.
  ///
  /// A collection is named if it was removed as a whole, or if too many of its keys changed to list them.
  public var scope: ChangeScope {
    if isEverything { return .everything }
    return ChangeScope(wholeCollections: collections.filter { $0.value.isCleared || $0.value.isUnlisted }.keys)
  }

  /// Whether all keys of a collection were removed, or it was erased.
  package func isCleared(_ collection: String) -> Bool {
    isEverything || collections[ByteString(collection)]?.isCleared ?? false
  }

  /// Whether anything changed in a collection, or may have.
  public func concerns(collection: String) -> Bool { concerns(nil, collection: collection) }

  /// Whether a key changed, or may have: because a collection was removed, or too many keys changed to list them.
  public func concerns(key: String, inCollection collection: String = "") -> Bool {
    concerns(nil, key: key, inCollection: collection)
  }

  /// Whether anything changed in a collection.
  ///
  /// - Parameter part: Restricts this to the object or the metadata; a removal changes both.
  package func concerns(_ part: ItemPart?, collection: String) -> Bool {
    if isEverything { return true }
    guard let change = collections[ByteString(collection)] else { return false }
    return change.isCleared || change.isUnlisted || change.keys.values.contains { $0.concerns(part) }
  }

  /// Whether a key changed, or may have.
  ///
  /// - Parameter part: Restricts this to the object or the metadata; a removal changes both.
  package func concerns(_ part: ItemPart?, key: String, inCollection collection: String) -> Bool {
    if isEverything { return true }
    guard let change = collections[ByteString(collection)] else { return false }
    return change.isCleared || change.isUnlisted || change.keys[ByteString(key)]?.concerns(part) ?? false
  }

  /// Whether too many keys of a collection changed to list them: any of them may have.
  package func isUnlisted(_ collection: String) -> Bool {
    collections[ByteString(collection)]?.isUnlisted ?? false
  }

  /// The kind of change to a key; nil if the key is not listed.
  public func kind(forKey key: String, inCollection collection: String = "") -> ChangeKind? {
    guard let change = collections[ByteString(collection)] else { return nil }
    if let kind = change.keys[ByteString(key)]?.kind { return kind }
    return change.clearedKeys.contains(ByteString(key)) ? .removed : nil
  }

  /// Whether a key was removed because it expired; see ``ItemInfo/expires``.
  public func hasExpired(key: String, inCollection collection: String = "") -> Bool {
    collections[ByteString(collection)]?.keys[ByteString(key)]?.expired != nil
  }

  /// When a key expired, if it was removed for that: usually before the time of the commit.
  package func expiry(ofKey key: String, inCollection collection: String) -> Date? {
    collections[ByteString(collection)]?.keys[ByteString(key)]?.expired.map(Date.init(milliseconds:))
  }

  /// The keys of a collection that changed, in the order of their bytes, including those removed with the collection.
  ///
  /// The keys that another process cleared are not known; see ``scope``.
  public func changedKeys(inCollection collection: String = "") -> [String] {
    changedKeys(nil, inCollection: collection)
  }

  /// - Parameter part: Restricts this to the object or the metadata; a removal changes both.
  package func changedKeys(_ part: ItemPart?, inCollection collection: String) -> [String] {
    guard let change = collections[ByteString(collection)] else { return [] }
    let keys = change.keys.filter { $0.value.concerns(part) }.map(\.key)
    return Set(keys).union(change.clearedKeys).sorted().map(\.string)
  }

  // MARK: Merging

  /// This commit combined with a later one.
  func merged(with later: Commit) -> Commit {
    let merged = collections.merging(later.collections) { $0.followed(by: $1) }
    var commit = Commit(
      position: later.position, origin: origin == later.origin ? origin : .several, time: later.time,
      author: author == later.author ? author : nil,
      actions: actions + later.actions, attachments: attachments + later.attachments,
      isEverything: isEverything || later.isEverything, collections: merged)
    commit.generation = later.generation
    return commit
  }
}

extension ChangeSet.Change {
  fileprivate func concerns(_ part: ItemPart?) -> Bool {
    switch part {
    case nil: true
    case .object: changesObject
    case .metadata: changesMetadata
    }
  }
}
