#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a transaction works on; only Coffer makes one.
public struct TransactionContext {
  package let session: Session
}

/// What read and write transactions have in common. Helpers that work in both take one of either kind:
///
/// ```swift
/// func theme(_ transaction: borrowing some Reading & ~Copyable) throws -> String {
///   try transaction.object(forKey: "theme", inCollection: "ui") ?? "light"
/// }
/// ```
///
/// Everything here throws `CofferError.damaged` or `.inputOutput` when the store cannot be read, and `CancellationError`
/// in the task of an asynchronous transaction that was cancelled. What gives values throws `CofferError.locked` where they
/// are sealed and the vault is locked.
public protocol Reading: ~Copyable {
  /// What the transaction works on.
  var context: TransactionContext { get }
}

extension Reading where Self: ~Copyable {
  package var session: Session { context.session }

  // MARK: One item

  /// The object for a key, nil when there is none.
  ///
  /// ```swift
  /// let retries: Int? = try transaction.object(forKey: "retries")
  /// let theme = try transaction.object(forKey: "theme", inCollection: "ui", as: Theme.self)
  /// ```
  ///
  /// Types are exact: a stored Bool is no Int. An integer reads as any integer type it fits, and as Double where that
  /// loses nothing.
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

  /// The object for a key as it describes itself, nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable`.
  public borrowing func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata for a key, nil when there is none, or no such key.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored.
  public borrowing func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try session.core.metadata(session.item(key, in: collection)?.metadata, as: type, key, in: collection)
  }

  /// Object and metadata for a key, nil when there is none.
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

  /// The object for a key as it is stored, nil when there is none; a sealed one in clear.
  public borrowing func serializedObject(
    forKey key: String, inCollection collection: String = ""
  ) throws -> SerializedValue? {
    let core = session.core
    return try session.item(key, in: collection).map {
      SerializedValue(try core.opened($0.object, key, in: collection))
    }
  }

  /// The metadata for a key as it is stored, nil when there is none; in clear, where it is sealed.
  public borrowing func serializedMetadata(
    forKey key: String, inCollection collection: String = ""
  ) throws -> SerializedValue? {
    let core = session.core
    return try session.item(key, in: collection)?.metadata.map {
      SerializedValue(try core.opened(.metadata, $0, key, in: collection))
    }
  }

  /// Object and metadata for a key as they are stored, nil when there is none; sealed ones in clear.
  public borrowing func serializedRow(
    forKey key: String, inCollection collection: String = ""
  ) throws -> (object: SerializedValue, metadata: SerializedValue?)? {
    let core = session.core
    return try session.item(key, in: collection).map { item in
      (
        SerializedValue(try core.opened(item.object, key, in: collection)),
        try item.metadata.map { SerializedValue(try core.opened(.metadata, $0, key, in: collection)) }
      )
    }
  }

  /// Whether there is an object for a key; its value is not read.
  public borrowing func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    try session.has(key, in: collection)
  }

  /// Everything about a key: value, metadata, version and time; nil when there is none.
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

  /// Kind, size, version and time of an item, nil when there is none; its value is not read.
  public borrowing func info(forKey key: String, inCollection collection: String = "") throws -> ItemInfo? {
    try session.info(key, in: collection)
  }

  /// The version of an item, 0 when there is none; see ``ItemInfo/version``.
  public borrowing func version(forKey key: String, inCollection collection: String = "") throws -> Int64 {
    try session.version(key, in: collection)
  }

  // MARK: Counts and lists

  /// How many collections hold something.
  public borrowing func numberOfCollections() throws -> Int {
    try session.collectionNames().count
  }

  /// How many keys a collection holds; 0 when there is no such collection.
  public borrowing func numberOfKeys(inCollection collection: String = "") throws -> Int {
    try session.count(in: collection)
  }

  /// How many keys all collections hold together.
  public borrowing func numberOfKeysInAllCollections() throws -> Int {
    try session.count(in: nil)
  }

  /// The names of the collections that hold something, in the order of their UTF-8 bytes.
  public borrowing func allCollections() throws -> [String] {
    try session.collectionNames()
  }

  /// The keys of a collection, in the order of their UTF-8 bytes.
  ///
  /// - Parameter range: Only the keys in it.
  public borrowing func allKeys(inCollection collection: String = "", within range: KeyRange = .all) throws -> [String]
  {
    try session.keys(in: collection, range)
  }

  /// Kind, size, version and time of each item of a collection, by key; no value is read.
  public borrowing func itemInfos(inCollection collection: String = "") throws -> [ItemInfo] {
    try session.infos(in: collection)
  }

  /// The items of all collections that should be set anew before a date, the most urgent first; no value is read.
  ///
  /// See ``ReadWriteTransaction/setObject(_:forKey:inCollection:expires:due:)``.
  public borrowing func itemsDue(before date: Date) throws -> [ItemInfo] {
    try session.itemsDue(before: date.milliseconds)
  }

  /// When the next item of any collection expires; nil where none will.
  public borrowing func nextExpiry() throws -> Date? {
    try session.nextExpiry().map(Date.init(milliseconds:))
  }

  /// The number of the snapshot that the transaction sees: it goes up by one with each commit that changed something.
  public borrowing func snapshot() throws -> UInt64 {
    try session.reading { try session.snapshot() }
  }

  // MARK: Earlier commits

  /// What was committed after a snapshot, up to the one that the transaction sees, the oldest commit first.
  ///
  /// ```swift
  /// guard let commits = try transaction.changes(since: lastSeen) else { return reloadEverything() }
  /// for key in commits.changedKeys(inCollection: "ui") { reload(key) }
  /// lastSeen = try transaction.snapshot()
  /// ```
  ///
  /// The store remembers the last 10,000 commits, or fewer that changed very many keys. Where a collection that was there
  /// then has been removed, its name is gone, and the notification of its removal says
  /// ``Commit/didClearAllCollections``: any key may have changed.
  ///
  /// - Parameter snapshot: What `snapshot()` gave, in this process or another.
  /// - Returns: nil when that is not known any more, or the store never had such a snapshot: any key may have changed.
  public borrowing func changes(since snapshot: UInt64) throws -> [Commit]? {
    try session.changes(since: snapshot)
  }

  /// The commits that the store remembers, the oldest first.
  ///
  /// These are the last 10,000, or fewer that changed very many keys.
  public borrowing func rememberedCommits() throws -> [Commit] {
    try session.rememberedCommits()
  }

  // MARK: Earlier values

  /// What an item was before, the newest first; empty where the collection keeps no history.
  ///
  /// The present value is not in it. A removed key has its history, too.
  ///
  /// - Throws: `CofferError.notDecodable`; `.locked` where the collection is sealed and the vault locked.
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

  /// The keys of a collection that have earlier values, removed ones included, in the order of their UTF-8 bytes.
  public borrowing func allKeysWithHistory(inCollection collection: String = "") throws -> [String] {
    try session.keysWithHistory(in: collection)
  }

  /// How much of its items' past a collection keeps; nil where it keeps none.
  public borrowing func historyLimits(forCollection collection: String) throws -> HistoryLimits? {
    try session.historyLimits(of: collection)
  }
}

/// A read transaction: one snapshot.
///
/// `Connection.read` lends it to a closure, which it cannot leave.
public struct ReadTransaction: ~Copyable, Reading {
  /// What the transaction works on.
  public let context: TransactionContext

  init(context: TransactionContext) {
    self.context = context
  }
}
