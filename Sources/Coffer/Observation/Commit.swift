#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a commit changed, by key.
///
/// A list of them answers the same questions as one:
///
/// ```swift
/// let commits = try connection.beginLongLivedReadTransaction()
/// if commits.hasChange(inCollection: "ui") { reload() }
/// ```
public struct Commit: Sendable {
  /// The snapshot that the commit made; of several commits, the last one's.
  public let snapshot: UInt64
  /// From where the commit came.
  public let origin: ChangeOrigin
  /// When the commit was made, by the clock of its writer, to the millisecond; nil where it is not known any more.
  public let time: Date?
  /// Who made the commit; nil where it is not known, and for commits of several.
  public let author: Author?
  /// What the transaction said beside its changes, see `ReadWriteTransaction.notificationCustomObject`; only in the
  /// process of the commit.
  public let customObjects: [any Sendable]
  /// Whether everything was removed, or is not known: any key of any collection may have changed.
  public let didClearAllCollections: Bool
  /// By the name of the collection.
  let collections: [ByteString: ChangeSet.CollectionChange]
  /// Which row of the change log it is; nil for several commits, and where they are not known any more.
  let identity: CommitIdentity?
  /// Whether it removed a collection that has no name here.
  private let removesUnnamed: Bool

  init(
    snapshot: UInt64, origin: ChangeOrigin, time: Date? = nil, author: Author? = nil,
    customObjects: [any Sendable] = [], didClearAllCollections: Bool,
    collections: [ByteString: ChangeSet.CollectionChange] = [:], identity: CommitIdentity? = nil,
    removesUnnamed: Bool = false
  ) {
    self.snapshot = snapshot
    self.origin = origin
    self.time = time
    self.author = author
    self.customObjects = customObjects
    self.didClearAllCollections = didClearAllCollections
    self.collections = collections
    self.identity = identity
    self.removesUnnamed = removesUnnamed
  }

  /// Stands for commits that are no longer in the change log: anything may have changed.
  static func unknown(through sequence: Int64) -> Commit {
    Commit(snapshot: UInt64(sequence), origin: .several, didClearAllCollections: true)
  }

  /// The same commit for somebody who may have seen a collection that has no name here any more: it may be any.
  var withUnnamedRemovalOfAll: Commit {
    guard removesUnnamed else { return self }
    return Commit(
      snapshot: snapshot, origin: origin, time: time, author: author, customObjects: customObjects,
      didClearAllCollections: true,
      collections: collections, identity: identity)
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
  public func kind(forKey key: String, inCollection collection: String = "") -> ChangeKind? {
    guard let change = collections[ByteString(collection)] else { return nil }
    if let kind = change.keys[ByteString(key)]?.kind { return kind }
    return change.clearedKeys.contains(ByteString(key)) ? .removed : nil
  }

  /// Whether a key was removed because its time had come; see ``ItemInfo/expires``.
  public func hasExpired(key: String, inCollection collection: String = "") -> Bool {
    collections[ByteString(collection)]?.keys[ByteString(key)]?.hasExpired ?? false
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
  func merged(with later: Commit) -> Commit {
    let merged = collections.merging(later.collections) { $0.followed(by: $1) }
    return Commit(
      snapshot: later.snapshot, origin: origin == later.origin ? origin : .several, time: later.time,
      author: author == later.author ? author : nil,
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

extension ChangeSet.Change {
  fileprivate func concerns(_ part: ItemPart?) -> Bool {
    switch part {
    case nil: true
    case .object: changesObject
    case .metadata: changesMetadata
    }
  }
}

extension Sequence<Commit> {
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

/// What became of a key.
public enum ChangeKind: Sendable, Hashable {
  /// It was not there before.
  case inserted
  /// Its object, its metadata, or both changed.
  case updated
  /// It is gone.
  case removed
  /// Nothing changed; it was announced as changed.
  case touched
}

/// Who made a change.
public enum ChangeOrigin: Sendable, Hashable {
  /// The proxy whose changes these are; a commit has another origin.
  case proxy
  /// A connection of this database, be it another proxy's or one that the program writes on; compare with
  /// ``Connection/id``.
  case connection(Connection.ID)
  /// A connection of this database; which one is not known, as no listener asked for it when the change was made.
  case thisDatabase
  /// Another process, or another `Database` of this one.
  case elsewhere
  /// More than one; a slow consumer gets several changes as one.
  case several
}
