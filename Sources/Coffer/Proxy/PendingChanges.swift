import CofferCrypto
import CofferStorage
import Dispatch

/// The changes of one proxy between `set` and commit.
///
/// They lie in batches. The newest batch is open and takes every change, until its flush has the write lock or someone
/// queues a write of their own on the connection; then the next change opens another. The flush of a batch is queued on
/// the connection when the batch is opened, so that the order of the queue is the order of the calls, unless the policy
/// says later. It writes that batch together with any older one that is not written yet, newer changes winning, in one
/// transaction.
final class PendingChanges: Sendable {
  private let connection: Connection
  private let policy: ConnectionProxy.FlushPolicy
  private let state = Lock(State())
  let failures = Broadcast<ConnectionProxy.FlushFailure>()

  private struct ItemKey: Hashable {
    let collection: ByteString
    let key: ByteString
  }

  private struct Batch {
    let number: UInt64
    /// The collections that are cleared before any of `changes` is made.
    private(set) var cleared: Set<ByteString> = []
    private(set) var changes: [ItemKey: PendingChange] = [:]

    /// How many changes it holds, a cleared collection being one.
    var count: Int { cleared.count + changes.count }

    /// What it does to a key, nil when nothing.
    func change(for key: ItemKey) -> PendingChange? {
      changes[key] ?? (cleared.contains(key.collection) ? .removed : nil)
    }

    mutating func add(_ change: PendingChange, for key: ItemKey) {
      changes[key] = change.over(self.change(for: key))
    }

    mutating func removeChange(for key: ItemKey) {
      changes[key] = nil
    }

    mutating func clear(_ collection: ByteString) {
      changes = changes.filter { $0.key.collection != collection }
      cleared.insert(collection)
    }

    /// Adds all of a newer batch.
    mutating func add(_ batch: Batch) {
      for collection in batch.cleared { clear(collection) }
      for (key, change) in batch.changes { add(change, for: key) }
    }
  }

  private struct State {
    /// Oldest first.
    ///
    /// They stay here, readable, until their commit has returned.
    var batches: [Batch] = []
    var isNewestOpen = false
    var lastNumber: UInt64 = 0
    /// The flush that is under way has taken the batches up to this one.
    var takenNumber: UInt64 = 0
    var isClosed = false
    /// How many flushes failed in a row.
    var failureCount = 0
    var isRetryQueued = false
    /// Which collections show what is committed; nil for all.
    var fetchFilter: CollectionFilter?
    /// Which collections take changes; nil for all.
    var writeFilter: CollectionFilter?
    /// Moves when changes leave other than by newer ones.
    var generation: UInt64 = 0

    /// Drops all that no flush has taken.
    mutating func reset() {
      drop { _ in true }
    }

    mutating func reset(_ key: ItemKey) {
      for index in batches.indices where batches[index].number > takenNumber { batches[index].removeChange(for: key) }
      drop { $0.count == 0 }
    }

    /// Drops batches that no flush has taken; their flushes will find nothing to do.
    private mutating func drop(_ isDropped: (Batch) -> Bool) {
      batches.removeAll { $0.number > takenNumber && isDropped($0) }
      if batches.last?.number != lastNumber { isNewestOpen = false }
      generation += 1
    }

    var changeCount: Int { batches.reduce(0) { $0 + $1.count } }
  }

  init(connection: Connection, policy: ConnectionProxy.FlushPolicy) {
    self.connection = connection
    self.policy = policy
    connection.onWillQueueWrite(self) { [weak self] in
      let number = self?.state.withLock { state in
        state.isNewestOpen = false
        return state.lastNumber
      }
      return { [weak self] session in
        if let self, let number { try self.flush(through: number, session, .normal) }
      }
    }
    ExitFlush.register(self)
  }

  deinit {
    connection.onWillQueueWrite(self, nil)
  }

  // MARK: Changes

  var count: Int { state.withLock { $0.changeCount } }

  /// What is pending for a key at one moment.
  struct Finding {
    /// nil when nothing is.
    var change: PendingChange?
    /// As long as this is the current one, what was found is not committed.
    let generation: UInt64
    /// Which collections show what is committed; nil for all.
    let filter: CollectionFilter?
  }

  func find(_ key: String, in collection: String) throws -> Finding {
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      var finding = Finding(change: nil, generation: state.generation, filter: state.fetchFilter)
      guard !state.batches.isEmpty else { return finding }
      let key = ItemKey(collection: ByteString(collection), key: ByteString(key))
      for batch in state.batches.reversed() {
        guard let earlier = batch.change(for: key) else { continue }
        finding.change = finding.change?.over(earlier) ?? earlier
        // What a replacement replaces may lie in an older batch.
        guard case .replaced = finding.change else { break }
      }
      return finding
    }
  }

  var generation: UInt64 { state.withLock { $0.generation } }

  /// Larger values would fail at the flush, and hold up everything else with them.
  ///
  /// Object and metadata that were set apart fit into SQLite's billion together.
  private static let maximumByteCount = 490_000_000

  func add(
    _ change: PendingChange, _ keys: some Sequence<String>, in collection: String,
    durability: ConnectionProxy.Durability
  ) throws {
    let collectionName = ByteString(collection)
    let keys = try keys.map { key in
      guard change.byteCount + key.utf8.count <= Self.maximumByteCount else {
        throw CofferError.notEncodable(
          collection: collection, key: key, reason: "it is larger than \(Self.maximumByteCount) bytes")
      }
      return ItemKey(collection: collectionName, key: ByteString(key))
    }
    try changeBatch(durability) { batch in
      for key in keys { batch.add(change, for: key) }
    }
  }

  /// Removes all that is in a collection, pending and committed, up to now.
  func clear(_ collection: String, durability: ConnectionProxy.Durability) throws {
    let collection = ByteString(collection)
    try changeBatch(durability) { $0.clear(collection) }
  }

  /// Runs `body` on the open batch.
  private func changeBatch(_ durability: ConnectionProxy.Durability, _ body: (inout Batch) -> Void) throws {
    // A change that can never be written must not wait for it.
    guard !connection.database.isReadOnly else { throw CofferError.readOnly }
    if durability != .asynchronous { try connection.checkMayWrite() }
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      if !state.isNewestOpen {
        state.lastNumber += 1
        state.batches.append(Batch(number: state.lastNumber))
        state.isNewestOpen = true
        // Queued under the lock: whoever queues a write after a `set` has returned must come behind its flush.
        enqueueFlush(of: state.lastNumber)
      }
      body(&state.batches[state.batches.count - 1])
    }
    switch durability {
    case .asynchronous: break
    case .committed: try flushAndWait(.normal)
    case .synced: try flushAndWait(.full)
    }
  }

  /// Drops the changes of a key that no flush has taken.
  func reset(_ key: String, in collection: String) throws {
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      state.reset(ItemKey(collection: ByteString(collection), key: ByteString(key)))
    }
  }

  /// Drops all that no flush has taken.
  ///
  /// - Parameter filter: What the fetch filter is to be from then on; nil leaves it.
  func reset(filter: CollectionFilter?? = nil) throws {
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      if let filter { state.fetchFilter = filter }
      state.reset()
    }
  }

  // MARK: Filters

  var fetchFilter: CollectionFilter? {
    get { state.withLock { $0.fetchFilter } }
    set { state.withLock { $0.fetchFilter = newValue } }
  }

  var writeFilter: CollectionFilter? {
    get { state.withLock { $0.writeFilter } }
    set { state.withLock { $0.writeFilter = newValue } }
  }

  // MARK: Flushing

  /// Sees to it that a new batch will be flushed.
  private func enqueueFlush(of number: UInt64) {
    switch policy {
    case .immediately: connection.enqueue { self.flush(through: number, $0) }
    case .after(let delay):
      // Nothing stays open just because of the delay.
      DispatchQueue.global().asyncAfter(deadline: .now() + delay.dispatchInterval) { [weak self] in
        guard let self else { return }
        connection.enqueue { self.flush(through: number, $0) }
      }
    case .manually: break
    }
  }

  /// Flushes what would wait longer than the proxy lives.
  func flushAfterRelease() {
    guard policy != .immediately, count > 0 else { return }
    let number = state.withLock { $0.lastNumber }
    connection.enqueue { self.flush(through: number, $0) }
  }

  /// Queues another attempt at all that is pending when its time has come.
  private func enqueueRetry(after delay: DispatchTimeInterval) {
    connection.enqueue(after: delay) { session in
      let number = self.state.withLock { state in
        state.isRetryQueued = false
        return state.lastNumber
      }
      self.flush(through: number, session)
    }
  }

  private func flush(through number: UInt64, _ session: Result<Session, any Error>) {
    do {
      try flush(through: number, session.get(), .normal)
    } catch {
      flushFailed(error)
    }
  }

  /// Writes all batches up to `number` in one transaction; on the connection's queue.
  private func flush(
    through number: UInt64, _ session: Session, _ synchronization: SQLiteConnection.Synchronization
  ) throws {
    let hasWork = state.withLock { state in state.batches.contains { $0.number <= number } }
    if hasWork { try write(through: number, session, synchronization) }
    // What is asked for may be committed already, without a sync.
    if synchronization == .full, !(hasWork && session.hasCommitted) {
      try CofferError.translating { try session.connection.synchronizeLog() }
    }
  }

  private func write(
    through number: UInt64, _ session: Session, _ synchronization: SQLiteConnection.Synchronization
  ) throws {
    // Before anyone hears of the commit: who writes then must not write the batch again.
    let settle = {
      self.state.withLock { state in
        state.batches.removeAll { $0.number <= number }
        state.generation += 1
        state.failureCount = 0
      }
    }
    // What a failed flush had taken may be reset again.
    defer { state.withLock { $0.takenNumber = 0 } }
    try session.write(synchronization, onSuccess: settle) {
      let batches = state.withLock { state in
        state.takenNumber = number
        if state.batches.last.map({ $0.number <= number }) ?? false { state.isNewestOpen = false }
        return state.batches.filter { $0.number <= number }
      }
      var all = Batch(number: number)
      for batch in batches { all.add(batch) }
      for collection in all.cleared { try session.removeAll(in: collection.string) }
      for (item, change) in all.changes {
        try session.write(change, item.key.string, in: item.collection.string)
      }
    }
  }

  func flushAndWait(_ synchronization: SQLiteConnection.Synchronization) throws {
    try connection.checkMayWrite()
    let number = state.withLock { $0.lastNumber }
    try connection.perform { session in
      do {
        try flush(through: number, session, synchronization)
      } catch {
        flushFailed(error)
        throw error
      }
    }
  }

  func flush(_ completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    let number = state.withLock { $0.lastNumber }
    connection.enqueue { session in
      do {
        try self.flush(through: number, session.get(), .normal)
        completion(.success(()))
      } catch {
        self.flushFailed(error)
        completion(.failure(error))
      }
    }
  }

  /// Reports, and tries again after 0.1 s, then after twice as long each time, up to half a minute.
  private func flushFailed(_ error: any Error) {
    let (count, failureCount) = state.withLock { state in
      state.failureCount += 1
      return (state.changeCount, state.failureCount)
    }
    let error = error as? CofferError ?? .unsupported(reason: "\(error)")
    failures.send(ConnectionProxy.FlushFailure(error: error, pendingChangeCount: count))
    connection.database.options.logger.error("A flush failed; \(count) changes stay pending. \(error)")
    // Nothing can be written any more where the database was closed, or belongs to the parent process.
    guard error != .closed, error != .usedAfterFork else { return }
    state.withLock { state in
      guard !state.batches.isEmpty, !state.isRetryQueued else { return }
      state.isRetryQueued = true
      enqueueRetry(after: .milliseconds(min(30_000, 100 << min(failureCount - 1, 9))))
    }
  }

  func close() throws {
    try connection.checkMayWrite()
    // No change gets in between the last flush and the end.
    state.withLock { $0.isClosed = true }
    do {
      // A second call waits here too, until the first one's flush has come to its end.
      try flushAndWait(.normal)
    } catch CofferError.closed where count == 0 {
      // The database went first, with nothing left to write.
    } catch {
      state.withLock { $0.isClosed = false }
      throw error
    }
  }

  /// Flushes at the exit of the process; waits no longer than until `deadline`.
  func flushAtExit(deadline: DispatchTime) {
    guard count > 0, !connection.isInTransaction else { return }
    let isDone = DispatchSemaphore(value: 0)
    flush { _ in isDone.signal() }
    _ = isDone.wait(timeout: deadline)
  }
}
