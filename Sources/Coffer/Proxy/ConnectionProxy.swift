import Dispatch

/// The front door: values are set in memory and read back at once, and reach the disk by themselves, in batches.
///
/// ```swift
/// let settings = try ConnectionProxy(database: database)
/// try settings.setObject("dark", forKey: "theme", inCollection: "ui")
/// let theme: String? = try settings.object(forKey: "theme", inCollection: "ui")  // "dark", before any disk has it
/// try await settings.flush()                                                    // now every connection sees it
/// ```
///
/// The first change after a quiet moment schedules one write transaction; all that changes until that transaction has
/// the write lock goes with it, and what changes during it makes the next one. No timer is involved, so an unflushed
/// change is as old as one transaction takes, unless a ``FlushPolicy`` says otherwise. A batch is written whole or not
/// at all.
///
/// Flushes commit with `synchronous=NORMAL`: a crash of the program loses nothing that was flushed, a power cut at most
/// the last commits. Ask for `Durability.synced` where that matters.
///
/// Pending changes are flushed by `close()`, after the proxy's release, and at the normal exit of the process; only a
/// crash, or a signal that ends the process, loses them.
public final class ConnectionProxy: Sendable {
  /// When a change that is being made returns.
  public enum Durability: Sendable {
    /// At once; the change is flushed soon.
    case asynchronous
    /// When it is committed: every other connection and process sees it.
    case committed
    /// When it is committed and the disk has it.
    case synced
  }

  /// When changes that were made asynchronously are flushed.
  ///
  /// `flush()`, a durable set, a write queued on `readWriteConnection`, `close()`, the proxy's release and the normal
  /// exit of the process flush in any case.
  public enum FlushPolicy: Sendable, Equatable {
    /// As soon as the write lock is to be had.
    case immediately
    /// So long after the first change of a batch.
    case after(Duration)
    /// Not by itself; only a flush that failed is tried again.
    case manually
  }

  /// A flush that failed.
  ///
  /// Its changes stay pending and readable, and are tried again.
  public struct FlushFailure: Sendable {
    /// Why it failed.
    public let error: CofferError
    /// How many changes are waiting.
    public let pendingChangeCount: Int
  }

  /// The connection that reads go to.
  ///
  /// Free for other read transactions.
  public let readOnlyConnection: Connection
  /// The connection that flushes go through.
  ///
  /// Free for other transactions: what was set before a write is queued on it is written before that write, what is set
  /// after it, after it.
  public let readWriteConnection: Connection
  /// When changes that were made asynchronously are flushed.
  public let flushPolicy: FlushPolicy
  let pending: PendingChanges

  /// Makes a proxy with two connections of its own.
  ///
  /// - Throws: What `Database.makeConnection()` throws.
  public convenience init(database: Database, flushPolicy: FlushPolicy = .immediately) throws {
    try self.init(
      database: database, readOnlyConnection: database.makeConnection(),
      readWriteConnection: database.makeConnection(), flushPolicy: flushPolicy)
  }

  /// Makes a proxy over connections of `database` that are also used otherwise.
  public init(
    database: Database, readOnlyConnection: Connection, readWriteConnection: Connection,
    flushPolicy: FlushPolicy = .immediately
  ) {
    precondition(
      readOnlyConnection.database === database && readWriteConnection.database === database,
      "The connections of a proxy must belong to its database.")
    self.readOnlyConnection = readOnlyConnection
    self.readWriteConnection = readWriteConnection
    self.flushPolicy = flushPolicy
    pending = PendingChanges(connection: readWriteConnection, policy: flushPolicy)
  }

  deinit {
    pending.flushAfterRelease()
  }

  var database: Database { readWriteConnection.database }

  // MARK: Reading

  /// The object for a key: the one set last through this proxy, else the committed one; nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored; `.closed`, `.damaged` or `.inputOutput`.
  public func object<Object: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self
  ) throws -> Object? {
    try item(key, in: collection).map { try database.core.decode(.object, $0.object, as: type, key, in: collection) }
  }

  /// The object for a key as it describes itself, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata for a key, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try item(key, in: collection)?.metadata
      .map { try database.core.decode(.metadata, $0, as: type, key, in: collection) }
  }

  /// Object and metadata for a key, as they were at one moment; nil when there is none.
  ///
  /// ```swift
  /// if let row = try settings.row(forKey: "photo", as: Photo.self, metadata: Date.self) {
  ///   print(row.object, row.metadata ?? "no date")
  /// }
  /// ```
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func row<Object: Decodable, Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self
  ) throws -> (object: Object, metadata: Metadata?)? {
    guard let item = try item(key, in: collection) else { return nil }
    return (
      try database.core.decode(.object, item.object, as: type, key, in: collection),
      try item.metadata.map { try database.core.decode(.metadata, $0, as: metadataType, key, in: collection) }
    )
  }

  /// Whether there is an object for a key.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    let finding = try pending.find(key, in: collection)
    switch finding.change {
    case .set: return true
    case .removed: return false
    // A replacement neither makes nor removes an item.
    case .replaced, nil:
      guard finding.filter?.allows(collection) ?? true else { return false }
      return try readOnlyConnection.read { try $0.hasObject(forKey: key, inCollection: collection) }
    }
  }

  /// Both values for a key: what is pending, over what is committed.
  private func item(_ key: String, in collection: String) throws -> StoredItem? {
    while true {
      let finding = try pending.find(key, in: collection)
      switch finding.change {
      case .set(let item): return item
      case .removed: return nil
      case .replaced(let replacement):
        let item = try committedItem(key, in: collection, finding.filter)
        // Once the replacement is committed, others may have written over it: it must not be applied to their values.
        guard pending.generation == finding.generation else { continue }
        return item.map(replacement.applied)
      case nil: return try committedItem(key, in: collection, finding.filter)
      }
    }
  }

  private func committedItem(
    _ key: String, in collection: String, _ filter: CollectionFilter?
  ) throws -> StoredItem? {
    guard filter?.allows(collection) ?? true else { return nil }
    return try readOnlyConnection.read { try $0.session.item(key, in: collection) }
  }

  // MARK: Filters

  /// Which collections show what is committed; nil, as at first, for all.
  ///
  /// Pending values stay visible in any collection, and writes are not filtered.
  public var fetchedCollectionsFilter: CollectionFilter? {
    get { pending.fetchFilter }
    set { pending.fetchFilter = newValue }
  }

  /// Which collections may be written through this proxy; nil, as at first, for all.
  ///
  /// A refused write throws `CofferError.collectionNotAllowed`. What is pending already is written.
  public var writtenCollectionsFilter: CollectionFilter? {
    get { pending.writeFilter }
    set { pending.writeFilter = newValue }
  }

  /// Sets `fetchedCollectionsFilter` and drops all changes that no flush has taken yet, in one step.
  ///
  /// - Throws: As `reset()`.
  public func abortAndReset(_ filter: CollectionFilter?) throws {
    try pending.reset(filter: .some(filter))
  }

  // MARK: Flushing

  /// How many changes are not committed yet.
  public var pendingChangeCount: Int { pending.count }

  /// Commits what is pending.
  ///
  /// When this returns, every change that was made before the call is visible to all.
  ///
  /// - Throws: `CofferError.diskFull`, `.busy`, `.inputOutput` …: nothing is lost, the changes stay pending and are tried
  ///   again; `.nestedTransaction` inside a transaction of `readWriteConnection`.
  public func flush() async throws {
    guard !readWriteConnection.isInTransaction else { throw CofferError.nestedTransaction }
    try await withCheckedThrowingContinuation { continuation in
      pending.flush { continuation.resume(with: $0) }
    }
  }

  /// Commits what is pending, as `flush()`, and blocks the calling thread until then.
  ///
  /// - Throws: As `flush()`.
  public func flushAndWait() throws {
    try pending.flushAndWait(.normal)
  }

  /// The flushes that fail from now on.
  ///
  /// Each call gives a stream of its own, which ends when the proxy is gone.
  public var flushFailures: AsyncStream<FlushFailure> { pending.failures.stream() }

  /// Flushes and ends the proxy: everything on it throws `CofferError.closed` afterwards.
  ///
  /// The connections stay open.
  ///
  /// - Throws: What a flush throws; the proxy is then still open, and nothing is lost.
  public func close() throws {
    try pending.close()
  }
}
