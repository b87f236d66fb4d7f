/// A write-behind cache over a database: values are set in memory and read back at once, and reach the disk in batches.
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
    /// As soon as the write lock is available.
    case immediately
    /// This long after the first change of a batch.
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

  /// A connection for read transactions of the program's own.
  ///
  /// The proxy reads what is committed through another one, so nothing that is done here, be it a long transaction or a
  /// pinned snapshot, holds up a read through the proxy or makes it old.
  public let readOnlyConnection: Connection
  /// The connection that flushes go through.
  ///
  /// Free for other transactions: what was set before a write is queued on it is written before that write, what is set
  /// after it, after it.
  public let readWriteConnection: Connection
  /// When changes that were made asynchronously are flushed.
  public let flushPolicy: FlushPolicy
  let state: ProxyState
  /// The items of typed keys.
  let places = KeyPlaces()
  /// What its own subscripts fall back to; the `Preferences` above it have layers, and so others.
  let lastGood = LastGoodValues()
  let pending: PendingChanges

  /// So much of what is committed is kept in memory unless the program says otherwise.
  public static let defaultCacheByteLimit = 8 << 20

  /// Makes a proxy, over connections of `database` that are also used otherwise, or of its own, which are opened when they
  /// are used.
  ///
  /// - Parameters:
  ///   - readOnlyConnection: What becomes ``readOnlyConnection``; nil for one of its own.
  ///   - readWriteConnection: What flushes go through; nil for one of its own.
  /// - Throws: `CofferError.closed` or `.usedAfterFork`.
  public init(
    database: Database, readOnlyConnection: Connection? = nil, readWriteConnection: Connection? = nil,
    flushPolicy: FlushPolicy = .immediately
  ) throws {
    try database.checkUsable()
    let readOnlyConnection = readOnlyConnection ?? database.makeConnectionForLater()
    let readWriteConnection = readWriteConnection ?? database.makeConnectionForLater()
    precondition(
      readOnlyConnection.database === database && readWriteConnection.database === database,
      "The connections of a proxy must belong to its database.")
    self.readOnlyConnection = readOnlyConnection
    self.readWriteConnection = readWriteConnection
    self.flushPolicy = flushPolicy
    state = ProxyState(reader: database.makeConnectionForLater(), cacheByteLimit: Self.defaultCacheByteLimit)
    pending = PendingChanges(connection: readWriteConnection, policy: flushPolicy, state: state)
  }

  deinit {
    pending.flushAfterRelease()
    state.listeners.finish()
  }

  /// The database that is read and written.
  public var database: Database { readWriteConnection.database }

  // MARK: Filters

  /// Which collections show what is committed; nil, as at first, for all.
  ///
  /// Pending values stay visible in any collection, and writes are not filtered.
  public var fetchedCollectionsFilter: CollectionFilter? {
    get { state.lock.withShared { state.fetchFilter } }
    set { state.lock.withExclusive { state.setFetchFilter(newValue) } }
  }

  /// Which collections may be written through this proxy; nil, as at first, for all.
  ///
  /// A refused write throws `CofferError.collectionNotAllowed`. What is pending already is written.
  public var writtenCollectionsFilter: CollectionFilter? {
    get { state.lock.withShared { state.writeFilter } }
    set { state.lock.withExclusive { state.writeFilter = newValue } }
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
    state.listeners.finish()
  }

  // MARK: Memory

  /// How much of what is committed is kept in memory, in bytes, keys and bookkeeping included; 8 MiB unless set.
  ///
  /// Small collections are kept whole; beyond the limit what was not read for the longest time goes first. Pending changes
  /// are always kept. With 0 every read goes to the store.
  public var cacheByteLimit: Int {
    get { state.lock.withShared { state.cacheByteLimit } }
    set {
      state.lock.withExclusive { state.cacheByteLimit = max(0, newValue) }
      state.sweep()
    }
  }
}
