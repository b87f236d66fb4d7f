import CofferCrypto
import CofferStorage
import Dispatch

/// What was asked for a key and is not committed yet.
///
/// Values are encoded when they are set: what the caller mutates later doesn't change them.
enum PendingChange: Sendable {
  case set(StoredValue, StoredValue?)
  case removed
}

/// The changes of one proxy between `set` and commit.
///
/// They lie in batches. The newest batch is open and takes every change, until its flush has the write lock or someone
/// queues a write of their own on the connection; then the next change opens another. The flush of a batch is queued on
/// the connection when the batch is opened, so that the order of the queue is the order of the calls. It writes that
/// batch together with any older one whose flush failed, newer changes winning, in one transaction.
final class PendingChanges: Sendable {
  private let connection: Connection
  private let state = Lock(State())
  let failures = Broadcast<ConnectionProxy.FlushFailure>()

  private struct ItemKey: Hashable {
    let collection: ByteString
    let key: ByteString
  }

  private struct Batch {
    let number: UInt64
    var changes: [ItemKey: PendingChange] = [:]
  }

  private struct State {
    /// Oldest first.
    ///
    /// They stay here, readable, until their commit has returned.
    var batches: [Batch] = []
    var isNewestOpen = false
    var lastNumber: UInt64 = 0
    var isClosed = false
    /// How many flushes failed in a row.
    var failureCount = 0
    var isRetryQueued = false

    var changeCount: Int { batches.reduce(0) { $0 + $1.changes.count } }
  }

  init(connection: Connection) {
    self.connection = connection
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

  /// The pending change for a key, nil when there is none.
  func change(_ key: String, in collection: String) throws -> PendingChange? {
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      guard !state.batches.isEmpty else { return nil }
      let key = ItemKey(collection: ByteString(collection), key: ByteString(key))
      for batch in state.batches.reversed() {
        if let change = batch.changes[key] { return change }
      }
      return nil
    }
  }

  /// Larger values would fail at the flush, and hold up everything else with them.
  private static let maximumByteCount = 500_000_000

  func add(
    _ change: PendingChange, _ key: String, in collection: String, durability: ConnectionProxy.Durability
  ) throws {
    // A change that can never be written must not wait for it.
    guard !connection.database.isReadOnly else { throw CofferError.readOnly }
    if case .set(let object, let metadata) = change,
      object.bytes.count + (metadata?.bytes.count ?? 0) + key.utf8.count > Self.maximumByteCount
    {
      throw CofferError.notEncodable(
        collection: collection, key: key, reason: "it is larger than \(Self.maximumByteCount) bytes")
    }
    if durability != .asynchronous { try connection.checkMayWrite() }
    let key = ItemKey(collection: ByteString(collection), key: ByteString(key))
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      if !state.isNewestOpen {
        state.lastNumber += 1
        state.batches.append(Batch(number: state.lastNumber))
        state.isNewestOpen = true
        // Queued under the lock: whoever queues a write after a `set` has returned must come behind its flush.
        enqueueFlush(of: state.lastNumber)
      }
      state.batches[state.batches.count - 1].changes[key] = change
    }
    switch durability {
    case .asynchronous: break
    case .committed: try flushAndWait(.normal)
    case .synced: try flushAndWait(.full)
    }
  }

  // MARK: Flushing

  private func enqueueFlush(of number: UInt64) {
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
        state.failureCount = 0
      }
    }
    try session.write(synchronization, onSuccess: settle) {
      let batches = state.withLock { state in
        if state.batches.last.map({ $0.number <= number }) ?? false { state.isNewestOpen = false }
        return state.batches.filter { $0.number <= number }
      }
      var changes: [ItemKey: PendingChange] = [:]
      for batch in batches { changes.merge(batch.changes) { $1 } }
      for (item, change) in changes {
        switch change {
        case .set(let object, let metadata):
          try session.set(object, metadata: metadata, item.key.string, in: item.collection.string)
          try session.didSet(object, metadata, item.key.string, in: item.collection.string)
        case .removed: _ = try session.remove(item.key.string, in: item.collection.string)
        }
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
