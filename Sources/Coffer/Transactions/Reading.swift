#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of a transaction; created by Coffer only.
public struct TransactionContext {
  package let session: Session

  package init(session: Session) {
    self.session = session
  }
}

/// What read and write transactions have in common.
///
/// A helper function for both takes it as a parameter:
///
/// ```swift
/// func theme(_ transaction: borrowing some Reading & ~Copyable) throws -> String {
///   try transaction.object(forKey: "theme", inCollection: "ui") ?? "light"
/// }
/// ```
///
/// Everything here throws `CofferError.damaged` or `.inputOutput` when the store cannot be read, and `CancellationError` in
/// the cancelled task of an asynchronous transaction. Reading sealed values throws `CofferError.vaultLocked` while the vault is
/// locked.
public protocol Reading: ~Copyable {
  /// The state of the transaction.
  var context: TransactionContext { get }
}

extension Reading where Self: ~Copyable {
  package var session: Session { context.session }

  /// Runs `body`, which reads.
  package borrowing func reading<Result>(_ body: (Session) throws -> Result) throws -> Result {
    let session = session
    return try session.reading { try body(session) }
  }

  // MARK: One item

  /// The object of a key, or nil.
  ///
  /// ```swift
  /// let retries: Int? = try transaction.object(forKey: "retries")
  /// let theme = try transaction.object(forKey: "theme", inCollection: "ui", as: Theme.self)
  /// ```
  ///
  /// Types are exact: a stored Bool cannot be read as an Int. An integer can be read as any integer type that holds it, and
  /// as Double if that is exact.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored.
  public borrowing func object<Object: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self
  ) throws -> Object? {
    let core = session.core
    return try session.item(key, in: collection).map {
      try core.decode($0.object, as: type, key, in: collection)
    }
  }

  /// The object of a key as a self-describing ``Value``, or nil.
  ///
  /// - Throws: `CofferError.notDecodable`.
  public borrowing func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata of a key; nil if it has none, or the key is absent.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored.
  public borrowing func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try session.core.metadata(session.item(key, in: collection)?.metadata, as: type, key, in: collection)
  }

  /// Object and metadata of a key, or nil.
  ///
  /// ```swift
  /// if let row = try transaction.row(forKey: "photo", as: Photo.self, metadata: Date.self) {
  ///   print(row.object, row.metadata ?? "no date")
  /// }
  /// ```
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored.
  public borrowing func row<Object: Decodable, Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self
  ) throws -> (object: Object, metadata: Metadata?)? {
    let core = session.core
    guard let item = try session.item(key, in: collection) else { return nil }
    return (
      try core.decode(item.object, as: type, key, in: collection),
      try core.metadata(item.metadata, as: metadataType, key, in: collection)
    )
  }

  /// Whether a key has an object; does not read its value.
  public borrowing func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    try session.has(key, in: collection)
  }

  /// Everything about a key: value, metadata, version and time; nil if it is absent.
  ///
  /// - Throws: `CofferError.notDecodable`.
  public borrowing func item(forKey key: String, inCollection collection: String = "") throws -> Item? {
    guard let row = try session.row(key, in: collection) else { return nil }
    let core = session.core
    return Item(
      collection: collection, key: key, value: try core.value(row.item.object, key, in: collection),
      metadata: try row.item.metadata.map { try core.value(.metadata, $0, key, in: collection) }, version: row.version,
      modified: .init(milliseconds: row.modified), expires: row.item.dates.expires.map(Date.init(milliseconds:)),
      due: row.item.dates.due.map(Date.init(milliseconds:)), author: row.author.flatMap(Author.init(text:)))
  }

  /// Kind, size, version and time of an item, or nil; does not read its value.
  public borrowing func info(forKey key: String, inCollection collection: String = "") throws -> ItemInfo? {
    try session.info(key, in: collection)
  }

  /// The version of an item, or 0 if it is absent; see ``ItemInfo/version``.
  public borrowing func version(forKey key: String, inCollection collection: String = "") throws -> CommitNumber {
    try session.version(key, in: collection)
  }

  // MARK: Counts and lists

  /// The number of keys in a collection; 0 if there is no such collection.
  public borrowing func numberOfKeys(inCollection collection: String = "") throws -> Int {
    try session.count(in: collection)
  }

  /// The names of the collections that are not empty, in the order of their UTF-8 bytes.
  public borrowing func allCollections() throws -> [String] {
    try session.collectionNames()
  }

  /// The keys of a collection, in the order of their UTF-8 bytes.
  ///
  /// - Parameter range: Restricts the keys.
  public borrowing func allKeys(inCollection collection: String = "", within range: KeyRange = .all) throws -> [String]
  {
    try session.keys(in: collection, range)
  }

  /// Kind, size, version and time of each item of a collection, by key; does not read values.
  public borrowing func itemInfos(inCollection collection: String = "") throws -> [ItemInfo] {
    try session.infos(in: collection)
  }

  /// The items of all collections that are due for renewal before a date, most urgent first; does not read values.
  ///
  /// See ``ReadWriteTransaction/setObject(_:forKey:inCollection:expires:due:)``.
  public borrowing func itemsDue(before date: Date) throws -> [ItemInfo] {
    try session.itemsDue(before: date.milliseconds)
  }

  /// When a key expired whose item no write has removed yet; nil if it has not.
  package borrowing func expiry(forKey key: String, inCollection collection: String) throws -> Date? {
    try session.expiry(key, in: collection).map(Date.init(milliseconds:))
  }

  /// Whether a collection has items, expired ones not yet removed included.
  package borrowing func hasItemsIncludingExpired(inCollection collection: String) throws -> Bool {
    try session.hasItemsIncludingExpired(collection)
  }

  /// When the next item of any collection expires, or nil.
  package borrowing func nextExpiry() throws -> Date? {
    try session.nextExpiry().map(Date.init(milliseconds:))
  }

  /// Whether an item of any collection has expired that no write has removed yet.
  package borrowing func hasExpiredItems() throws -> Bool { try session.hasExpiredItems() }

  /// The number of the newest commit that the transaction sees; each commit that changes something increases it by one.
  public borrowing func commitNumber() throws -> CommitNumber {
    try session.reading { try session.commitNumber() }
  }

  // MARK: Earlier commits

  /// The place of the transaction's snapshot in the history of the store.
  ///
  /// A write transaction's own commit is not included.
  public borrowing func position() throws -> CommitPosition {
    try session.position()
  }

  /// The commits after a place in the history, up to the one that the transaction sees, oldest first.
  ///
  /// ```swift
  /// guard let commits = try transaction.changes(since: lastSeen) else { return reloadEverything() }
  /// for key in Set(commits.flatMap { $0.changedKeys(inCollection: "ui") }) { reload(key) }
  /// lastSeen = try transaction.position()
  /// ```
  ///
  /// The store keeps the last 10,000 commits, or fewer if they changed very many keys. When a collection is removed, its
  /// name is erased; if it existed at `position`, the ``Commit/scope`` of the commit that removed it is
  /// `.everything`.
  ///
  /// - Parameter position: The result of `position()`, or a commit's ``Commit/position``, in this process or another.
  /// - Returns: nil if the commits are no longer kept, or the place is in another history, that of a store before it was
  ///   restored or replaced: any key may have changed.
  public borrowing func changes(since position: CommitPosition) throws -> [Commit]? {
    try session.changes(since: position)
  }

  /// The same, after a commit that this history is known to have.
  package borrowing func changes(since number: CommitNumber) throws -> [Commit]? {
    try session.changes(since: number)
  }

  /// The commits that the store keeps, oldest first.
  ///
  /// These are the last 10,000, or fewer if they changed very many keys.
  package borrowing func rememberedCommits() throws -> [Commit] {
    try session.rememberedCommits()
  }

  // MARK: Earlier values

  /// The earlier values of an item, newest first; empty if the collection keeps no history.
  ///
  /// The current value is not included. A removed key has a history too.
  ///
  /// - Throws: `CofferError.notDecodable`; `.vaultLocked` when the collection is sealed and the vault is locked.
  public borrowing func history(
    forKey key: String, inCollection collection: String = ""
  ) throws -> [HistoricItem] {
    let core = session.core
    return try session.history(key, in: collection).map { row in
      HistoricItem(
        collection: collection, key: key, value: try core.value(row.item.object, key, in: collection),
        metadata: try row.item.metadata.map { try core.value(.metadata, $0, key, in: collection) },
        version: row.version,
        modified: .init(milliseconds: row.modified), endVersion: row.ended, ended: .init(milliseconds: row.time),
        expires: row.item.dates.expires.map(Date.init(milliseconds:)), author: row.author.flatMap(Author.init(text:)),
        endedBy: row.endedBy.flatMap(Author.init(text:)))
    }
  }

  /// The keys of a collection that have earlier values, including removed keys, in the order of their UTF-8 bytes.
  public borrowing func allKeysWithHistory(inCollection collection: String = "") throws -> [String] {
    try session.keysWithHistory(in: collection)
  }

  /// The limits of the history that a collection keeps; nil if it keeps none.
  public borrowing func historyLimits(forCollection collection: String) throws -> HistoryLimits? {
    try session.historyLimits(of: collection)
  }
}

/// A read transaction: one snapshot.
///
/// `Connection.read` passes it to a closure, which it cannot escape.
public struct ReadTransaction: ~Copyable, Reading {
  /// The state of the transaction.
  public let context: TransactionContext

  package init(context: TransactionContext) {
    self.context = context
  }
}
