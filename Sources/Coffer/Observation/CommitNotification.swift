/// What a commit changed, by key.
///
/// A list of them answers the same questions as one:
///
/// ```swift
/// let notifications = try connection.beginLongLivedReadTransaction()
/// if notifications.hasChange(inCollection: "ui") { reload() }
/// ```
public struct CommitNotification: Sendable {
  /// Who made a commit.
  public enum Origin: Sendable, Hashable {
    /// A connection of this database; compare with ``Connection/id``.
    case connection(Connection.ID)
    /// A connection of this database; which one, nobody asked to remember when it was made.
    case thisDatabase
    /// Another process, or another `Database` of this one.
    case elsewhere
    /// More than one; a slow consumer gets several commits as one.
    case several
  }

  /// What became of a key in a commit as a whole.
  public enum Kind: Sendable, Hashable {
    /// It was not there before.
    case inserted
    /// Its object, its metadata, or both changed.
    case updated
    /// It is gone.
    case removed
    /// Nothing changed; it was announced as changed.
    case touched
  }

  /// The snapshot that the commit made; of several commits, the last one's.
  public let snapshot: UInt64
  /// Who made the commit.
  public let origin: Origin
  /// What the transaction said beside its changes, see `ReadWriteTransaction.notificationCustomObject`; only in the
  /// process of the commit.
  public let customObjects: [any Sendable]
  /// Whether everything was removed, or is not known: any key of any collection may have changed.
  public let didClearAllCollections: Bool
  /// By the name of the collection.
  let collections: [ByteString: ChangeSet.CollectionChange]

  init(
    snapshot: UInt64, origin: Origin, customObjects: [any Sendable], didClearAllCollections: Bool,
    collections: [ByteString: ChangeSet.CollectionChange]
  ) {
    self.snapshot = snapshot
    self.origin = origin
    self.customObjects = customObjects
    self.didClearAllCollections = didClearAllCollections
    self.collections = collections
  }

  // MARK: Questions

  /// The names of the collections that changed, as far as they are known, in the order of their bytes.
  public var changedCollections: [String] { collections.keys.sorted().map(\.string) }

  /// Whether a collection was removed as a whole.
  public func didClear(collection: String) -> Bool {
    didClearAllCollections || collections[ByteString(collection)]?.isCleared ?? false
  }

  /// Whether anything changed in a collection.
  ///
  /// - Parameter part: The object or the metadata alone; a removal changes both.
  public func hasChange(inCollection collection: String, of part: ItemPart? = nil) -> Bool {
    if didClearAllCollections { return true }
    guard let change = collections[ByteString(collection)] else { return false }
    return change.isCleared || change.isUnlisted || change.keys.values.contains { $0.concerns(part) }
  }

  /// Whether a key changed, or may have: where a collection was removed, or so much changed that the keys are not listed.
  ///
  /// - Parameter part: The object or the metadata alone; a removal changes both.
  public func hasChange(forKey key: String, inCollection collection: String = "", of part: ItemPart? = nil) -> Bool {
    if didClearAllCollections { return true }
    guard let change = collections[ByteString(collection)] else { return false }
    return change.isCleared || change.isUnlisted || change.keys[ByteString(key)]?.concerns(part) ?? false
  }

  /// Whether any of some keys changed, or may have.
  ///
  /// - Parameter part: The object or the metadata alone; a removal changes both.
  public func hasChange(
    forAnyOf keys: some Sequence<String>, inCollection collection: String = "", of part: ItemPart? = nil
  ) -> Bool {
    keys.contains { hasChange(forKey: $0, inCollection: collection, of: part) }
  }

  /// Whether more keys of a collection changed than are listed: any of them may have.
  public func isUnlisted(collection: String) -> Bool {
    collections[ByteString(collection)]?.isUnlisted ?? false
  }

  /// What became of a key, where it is listed.
  public func kind(forKey key: String, inCollection collection: String = "") -> Kind? {
    guard let change = collections[ByteString(collection)] else { return nil }
    if let kind = change.keys[ByteString(key)]?.kind { return Kind(kind) }
    return change.clearedKeys.contains(ByteString(key)) ? .removed : nil
  }

  /// The keys of a collection that changed, in the order of their bytes, those that were removed by clearing included.
  ///
  /// Another process does not say which keys it cleared; see ``didClear(collection:)`` and ``isUnlisted(collection:)``.
  public func changedKeys(inCollection collection: String = "", of part: ItemPart? = nil) -> [String] {
    guard let change = collections[ByteString(collection)] else { return [] }
    let keys = change.keys.filter { $0.value.concerns(part) }.map(\.key)
    return Set(keys).union(change.clearedKeys).sorted().map(\.string)
  }

  // MARK: Several as one

  /// This commit and a later one.
  func merged(with later: CommitNotification) -> CommitNotification {
    let merged = collections.merging(later.collections) { $0.followed(by: $1) }
    return CommitNotification(
      snapshot: later.snapshot, origin: origin == later.origin ? origin : .several,
      customObjects: customObjects + later.customObjects,
      didClearAllCollections: didClearAllCollections || later.didClearAllCollections, collections: merged)
  }
}

/// One of an item's two values.
public enum ItemPart: Sendable, Hashable {
  /// The object.
  case object
  /// The metadata.
  case metadata
}

extension CommitNotification.Kind {
  init(_ kind: ChangeSet.Kind) {
    self =
      switch kind {
      case .inserted: .inserted
      case .updated: .updated
      case .removed: .removed
      case .touched: .touched
      }
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

extension Sequence<CommitNotification> {
  /// Whether a collection was removed as a whole.
  public func didClear(collection: String) -> Bool { contains { $0.didClear(collection: collection) } }

  /// Whether anything changed in a collection.
  public func hasChange(inCollection collection: String, of part: ItemPart? = nil) -> Bool {
    contains { $0.hasChange(inCollection: collection, of: part) }
  }

  /// Whether a key changed, or may have.
  public func hasChange(forKey key: String, inCollection collection: String = "", of part: ItemPart? = nil) -> Bool {
    contains { $0.hasChange(forKey: key, inCollection: collection, of: part) }
  }

  /// Whether any of some keys changed, or may have.
  public func hasChange(
    forAnyOf keys: some Sequence<String>, inCollection collection: String = "", of part: ItemPart? = nil
  ) -> Bool {
    let keys = Array(keys)
    return contains { $0.hasChange(forAnyOf: keys, inCollection: collection, of: part) }
  }

  /// The keys of a collection that changed, each once, in the order of their bytes.
  public func changedKeys(inCollection collection: String = "", of part: ItemPart? = nil) -> [String] {
    Set(flatMap { $0.changedKeys(inCollection: collection, of: part) }.map(ByteString.init)).sorted().map(\.string)
  }
}
