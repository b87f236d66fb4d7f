/// A write-behind cache over a database: values are set in memory, can be read back at once, and reach the disk in batches.
///
/// ```swift
/// let settings = try ConnectionProxy(database: database)
/// try settings.setObject("dark", forKey: "theme", inCollection: "ui")
/// let theme: String? = try settings.object(forKey: "theme", inCollection: "ui")  // "dark", before any disk has it
/// try await settings.flush()                                                    // now every connection sees it
/// ```
///
/// The first change after a pause schedules one write transaction. All changes until that transaction has the write lock are
/// part of it, and changes during it form the next one. There is no timer, so an unflushed change is no older than one
/// transaction takes, unless a ``FlushPolicy`` says otherwise. A batch is written completely or not at all.
///
/// Flushes commit with `synchronous=NORMAL`: a crash of the program loses nothing that was flushed, a power failure at most
/// the last commits. Use `Durability.synced` where that matters.
///
/// Pending changes are flushed by `close()`, when the proxy is released, and at the normal exit of the process; only a
/// crash, or a signal that ends the process, loses them.
public final class ConnectionProxy: Sendable {
  /// How durable a change is when the call that makes it returns.
  public enum Durability: Sendable {
    /// In memory; it is flushed soon.
    case asynchronous
    /// Committed: every other connection and process sees it.
    case committed
    /// Committed, and synced to disk.
    case synced
  }

  /// When asynchronous changes are flushed.
  ///
  /// Regardless of the policy, they are flushed by `flush()`, a durable set, `close()`, the release of the proxy and the normal exit of the process.
  public enum FlushPolicy: Sendable, Equatable {
    /// As soon as the write lock is available.
    case immediately
    /// This long after the first change of a batch.
    case after(Duration)
    /// Not automatically; only a failed flush is retried.
    case manually
  }

  /// A flush that failed.
  ///
  /// Its changes stay pending and readable; the flush is retried.
  public struct FlushFailure: Sendable {
    /// Why it failed.
    public let error: CofferError
    /// How many changes are pending.
    public let pendingChangeCount: Int
  }

  /// A connection for read transactions besides the proxy's own reads, which use another one.
  package let reader: Connection
  /// The connection used for flushes.
  ///
  /// Changes set before a write is queued on it are written before that write, later ones after it.
  package let writer: Connection
  /// When asynchronous changes are flushed.
  package let flushPolicy: FlushPolicy
  let state: ProxyState
  /// The items of typed keys.
  let places = KeyPlaces()
  /// The fallbacks of its own subscripts; the `Preferences` above it have layers, and so other fallbacks.
  let lastGood = LastGoodValues()
  let pending: PendingChanges

  /// The default of ``cacheByteLimit``.
  package static let defaultCacheByteLimit = 8 << 20

  /// Creates a proxy, whose connections open on first use.
  ///
  /// - Throws: `CofferError.closed` or `.usedAfterFork`.
  public convenience init(database: Database, flushPolicy: FlushPolicy = .immediately) throws {
    try self.init(database: database, reader: nil, writer: nil, flushPolicy: flushPolicy)
  }

  /// Creates a proxy with connections of `database`; nil for one of its own.
  package init(
    database: Database, reader: Connection? = nil, writer: Connection? = nil, flushPolicy: FlushPolicy = .immediately
  ) throws {
    try database.checkUsable()
    let reader = reader ?? database.makeConnectionForLater()
    let writer = writer ?? database.makeConnectionForLater()
    precondition(
      reader.database === database && writer.database === database,
      "The connections of a proxy must belong to its database.")
    self.reader = reader
    self.writer = writer
    self.flushPolicy = flushPolicy
    state = ProxyState(reader: database.makeConnectionForLater(), cacheByteLimit: Self.defaultCacheByteLimit)
    pending = PendingChanges(connection: writer, policy: flushPolicy, state: state)
  }

  deinit {
    pending.flushAfterRelease()
    state.listeners.finish()
  }

  /// The database of the proxy.
  public var database: Database { writer.database }

  // MARK: Filters

  /// The collections whose committed values are visible; nil, the default, for all.
  ///
  /// Pending values are visible in any collection, and writes are not filtered.
  public var fetchedCollectionsFilter: CollectionFilter? {
    get { state.lock.withShared { state.filters.fetch } }
    set { _ = state.lock.withExclusive { state.setFetchFilter(newValue) } }
  }

  /// The collections that may be written through this proxy; nil, the default, for all.
  ///
  /// A rejected write throws `CofferError.collectionNotAllowed`. Changes that are already pending are written.
  public var writtenCollectionsFilter: CollectionFilter? {
    get { state.lock.withShared { state.filters.write } }
    set { _ = state.lock.withExclusive { state.setWriteFilter(newValue) } }
  }

  /// Sets `fetchedCollectionsFilter` and discards all changes that no flush has taken yet, in one step.
  ///
  /// - Throws: As `discardPendingChanges()`.
  package func discardPendingChanges(filter: CollectionFilter?) throws {
    try pending.reset(filter: .some(filter))
  }

  // MARK: Flushing

  /// How many changes are not committed yet.
  public var pendingChangeCount: Int { pending.count }

  /// Commits pending changes.
  ///
  /// When this returns, every change made before the call is visible to all.
  ///
  /// - Throws: `CofferError.diskFull`, `.busy`, `.inputOutput` …: nothing is lost; the changes stay pending, and are retried
  ///   later; `.nestedTransaction` inside a transaction of the connection used for flushes.
  public func flush() async throws {
    guard !writer.isInTransaction else { throw CofferError.nestedTransaction }
    try await pending.flush(.normal)
  }

  /// Commits pending changes, as `flush()`, blocking the calling thread.
  ///
  /// - Throws: As `flush()`.
  public func flushAndWait() throws {
    try pending.flushAndWait(.normal)
  }

  /// The flushes that fail from now on.
  ///
  /// Each call returns a new stream, which ends when the proxy is released.
  public var flushFailures: AsyncStream<FlushFailure> { pending.failures.stream() }

  /// Flushes and closes the proxy: afterwards, everything on it throws `CofferError.closed`.
  ///
  /// The connections stay open.
  ///
  /// - Throws: The errors of a flush; the proxy then stays open, and nothing is lost.
  public func close() throws {
    try pending.close()
    state.listeners.finish()
  }

  // MARK: Memory

  /// How much committed data is cached in memory, in bytes, including keys and bookkeeping; 8 MiB by default.
  ///
  /// Small collections are cached completely; beyond the limit, the least recently read items are evicted. Pending changes
  /// are always kept. With 0, every read goes to the store.
  public var cacheByteLimit: Int {
    get { state.lock.withShared { state.items.byteLimit } }
    set {
      state.lock.withExclusive { state.items.byteLimit = max(0, newValue) }
      state.sweep()
    }
  }
}
