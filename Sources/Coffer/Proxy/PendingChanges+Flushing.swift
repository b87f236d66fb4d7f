import CofferCrypto
import CofferStorage
import Dispatch

extension PendingChanges {
  // MARK: Flushing

  /// Schedules the flush of a new batch.
  func enqueueFlush(of number: UInt64) {
    switch policy {
    case .immediately: connection.enqueue { self.flush(through: number, $0) }
    case .after(let delay):
      // The delay alone must not keep anything open.
      DispatchQueue.global().asyncAfter(deadline: .now() + delay.dispatchInterval) { [weak self] in
        guard let self else { return }
        connection.enqueue { self.flush(through: number, $0) }
      }
    case .manually: break
    }
  }

  /// Flushes changes that would otherwise wait beyond the proxy's lifetime.
  func flushAfterRelease() {
    guard policy != .immediately, count > 0 else { return }
    let number = lastNumber
    connection.enqueue { self.flush(through: number, $0) }
  }

  /// Queues another attempt to flush everything pending, after a delay.
  private func enqueueRetry(after delay: DispatchTimeInterval) {
    connection.enqueue(after: delay) { session in
      self.retries.withLock { $0.isQueued = false }
      self.state.record(.flushRetry)
      self.flush(through: self.lastNumber, session)
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
  func flush(
    through number: UInt64, _ session: Session, _ synchronization: SQLiteConnection.Synchronization
  ) throws {
    let hasWork = state.lock.withShared { state.pending.batches.contains { $0.number <= number } }
    if hasWork { try write(through: number, session, synchronization) { ((), nil) } }
    // The changes may be committed already, but not synced.
    if synchronization == .full, !(hasWork && session.hasCommitted) {
      try CofferError.translating { try session.synchronizeLog() }
    }
  }

  /// Writes all batches up to `number`, and what `body` writes after them, in one transaction: the life of a change as
  /// `ProxyState` tells it, from 2 to 5.
  ///
  /// - Parameter body: Returns its result, and the change it has made beside the batches, if any.
  private func write<Result>(
    through number: UInt64, _ session: Session, _ synchronization: SQLiteConnection.Synchronization,
    cancellation: Cancellation? = nil, _ body: () throws -> (Result, OwnChange?)
  ) throws -> Result {
    var meter = FlushMeter(state)
    var taken: [PendingBatches.Batch] = []
    // The lists of thousands of items are freed here, after that, and without the lock.
    defer { withExtendedLifetime(taken) { finishFlush() } }
    return try session.writing(synchronization, cancellation: cancellation) {
      taken = try take(through: number, for: session)
      meter.didTake(taken, count)
      try apply(taken, through: number, to: session)
      let (result, ownChange) = try body()
      let commit = try session.prepareCommit()
      let end = try commit?.number ?? CofferError.translating { try session.endOfLog().number }
      markInFlight(commit, through: number, hasMore: ownChange != nil, end)
      try session.commit(commit)
      // Before anyone is notified: if a listener writes, the batch must not be written again.
      settle(through: number, commit, end, ownChange, session)
      meter.didSettle(count)
      return result
    }
  }

  /// The change to an item that is made beside the batches, from its committed value.
  private struct OwnChange {
    let key: String
    let collection: String
    let before: HeldItem?
    let after: HeldItem?
  }

  private func take(through number: UInt64, for session: Session) throws -> [PendingBatches.Batch] {
    let (taken, isFirst) = state.lock.withExclusive { (state.pending.take(through: number), state.known.number < 0) }
    // From now on, commits of others trigger the search for a vault; an existing one has to be found here.
    if isFirst { try session.lookForVault() }
    return taken
  }

  private func apply(_ taken: [PendingBatches.Batch], through number: UInt64, to session: Session) throws {
    session.transaction.expectedChangeCount = taken.reduce(0) { $0 + $1.items.count }
    for batch in taken { for collection in batch.cleared { try session.removeAll(in: collection.name) } }
    try state.forEachChange(of: taken, through: number) { try $0.write(to: session) }
  }

  /// - Parameters:
  ///   - commit: nil if there is nothing to commit.
  ///   - hasMore: Whether it makes other changes than those of the batches.
  ///   - end: The newest commit, with this one.
  private func markInFlight(_ commit: PreparedCommit?, through number: UInt64, hasMore: Bool, _ end: CommitNumber) {
    state.lock.withExclusive {
      guard let commit else {
        // Settle changes without effect while no one else can write: a replacement of an absent item must not apply to a
        // later one.
        return _ = state.settle(through: number, commit: nil, in: end)
      }
      state.known.willCommit(commit.identity)
      state.pending.markInFlight(commit.identity, through: number, hasMore: hasMore)
    }
  }

  private func settle(
    through number: UInt64, _ commit: PreparedCommit?, _ end: CommitNumber, _ ownChange: OwnChange?,
    _ session: Session
  ) {
    state.hooks.onCommit?()
    let count = session.connection.commitCountAfterWrite
    state.lock.withExclusive {
      let isNext = state.settle(
        through: number, commit: commit.map { ProxyState.FlushedCommit(number: $0.number, count: count) }, in: end,
        sealedIn: session.transaction.sealedChanges)
      if let change = ownChange {
        state.didChange(change.key, in: change.collection, from: change.before, to: change.after, isKnown: isNext)
      }
      state.forgetFollowers(session.transaction.followers)
    }
    retries.withLock { $0.failureCount = 0 }
  }

  /// Settles the items of a flush that has committed, and returns the batches of one that has failed.
  private func finishFlush() {
    state.hooks.onSettling?()
    while state.lock.withExclusive({ state.settleSome() }) {}
    state.lock.withExclusive { state.endFlush() }
    state.sweep()
  }

  /// Changes one item from its committed value, after the pending changes, in one transaction.
  ///
  /// - Parameter body: Returns the new item, nil to remove it, and the result.
  func change<Result>(
    _ key: String, in collection: String, _ durability: ConnectionProxy.Durability,
    _ body: (HeldItem?) throws -> (HeldItem?, Result)
  ) throws -> Result {
    let number = try numberBeforeChange()
    return try connection.perform { try change(key, in: collection, durability, $0, after: number, body) }
  }

  /// The same, without blocking a thread; a cancelled task rolls the change back.
  func change<Result: Sendable>(
    _ key: String, in collection: String, _ durability: ConnectionProxy.Durability,
    _ body: @escaping @Sendable (HeldItem?) throws -> (HeldItem?, Result)
  ) async throws -> Result {
    let number = try numberBeforeChange()
    return try await connection.performing { session, cancellation in
      try self.change(key, in: collection, durability, session, after: number, cancellation: cancellation, body)
    }
  }

  /// The last batch that comes before a change made now.
  private func numberBeforeChange() throws -> UInt64 {
    guard !isReadOnly else { throw CofferError.readOnly }
    try connection.checkMayWrite()
    let (number, isClosed) = state.lock.withExclusive {
      // Later changes come after this one.
      state.pending.closeNewest()
      return (state.pending.lastNumber, state.pending.isClosed)
    }
    guard !isClosed else { throw CofferError.closed }
    return number
  }

  private func change<Result>(
    _ key: String, in collection: String, _ durability: ConnectionProxy.Durability, _ session: Session,
    after number: UInt64, cancellation: Cancellation? = nil, _ body: (HeldItem?) throws -> (HeldItem?, Result)
  ) throws -> Result {
    let synchronization: SQLiteConnection.Synchronization = durability == .synced ? .full : .normal
    return try write(through: number, session, synchronization, cancellation: cancellation) {
      let before = try session.item(key, in: collection)
      let (new, result) = try body(before)
      guard new != before else {
        return (result, OwnChange(key: key, collection: collection, before: before, after: before))
      }
      let change = new.map { Mutation.set($0) } ?? .removed
      try change.checkSize(key, in: collection)
      try session.apply(change, key, in: collection)
      // A sealed item differs from the one that was to be set.
      let after = session.transaction.sealedChanges.isEmpty ? new : try session.storedItem(key, in: collection)
      return (result, OwnChange(key: key, collection: collection, before: before, after: after))
    }
  }

  private var lastNumber: UInt64 { state.lock.withShared { state.pending.lastNumber } }

  func flushAndWait(_ synchronization: SQLiteConnection.Synchronization) throws {
    try connection.checkMayWrite()
    let number = lastNumber
    try connection.perform { session in
      do {
        try flush(through: number, session, synchronization)
      } catch {
        flushFailed(error)
        throw error
      }
    }
  }

  /// Flushes without blocking a thread.
  func flush(_ synchronization: SQLiteConnection.Synchronization) async throws {
    try await withCheckedThrowingContinuation { continuation in
      flush(synchronization) { continuation.resume(with: $0) }
    }
  }

  func flush(
    _ synchronization: SQLiteConnection.Synchronization,
    _ completion: @escaping @Sendable (Result<Void, any Error>) -> Void
  ) {
    let number = lastNumber
    connection.enqueue { session in
      do {
        try self.flush(through: number, session.get(), synchronization)
        completion(.success(()))
      } catch {
        self.flushFailed(error)
        completion(.failure(error))
      }
    }
  }

  /// Reports the failure, and retries after 0.1 s, then after twice as long each time, up to half a minute.
  private func flushFailed(_ error: any Error) {
    let failureCount = retries.withLock { retries in
      retries.failureCount += 1
      return retries.failureCount
    }
    let count = count
    let error = error as? CofferError ?? .unsupported(reason: "\(error)")
    state.record(.flushFailure)
    state.record(.pending(count: count))
    failures.send(ConnectionProxy.FlushFailure(error: error, pendingChangeCount: count))
    connection.database.options.logger.error("A flush failed; \(count) changes stay pending. \(error)")
    // Nothing can be written any more if the database is closed, or belongs to the parent process.
    guard error != .closed, error != .usedAfterFork else { return }
    let isFirst = retries.withLock { retries in
      guard count > 0, !retries.isQueued else { return false }
      retries.isQueued = true
      return true
    }
    if isFirst { enqueueRetry(after: .milliseconds(min(30_000, 100 << min(failureCount - 1, 9)))) }
  }
}

/// Measures a flush, if the database has a meter.
private struct FlushMeter {
  private let stopwatch: Stopwatch?
  private var changeCount = 0

  init(_ state: ProxyState) { stopwatch = state.core.stopwatch() }

  /// - Parameter pendingCount: A closure, because it is seldom needed.
  mutating func didTake(_ taken: [PendingBatches.Batch], _ pendingCount: @autoclosure () -> Int) {
    changeCount = taken.reduce(0) { $0 + $1.count }
    stopwatch?.meter.record(.pending(count: pendingCount()))
  }

  func didSettle(_ pendingCount: @autoclosure () -> Int) {
    guard let stopwatch, changeCount > 0 else { return }
    stopwatch.record { .flush(changeCount: changeCount, duration: $0) }
    stopwatch.meter.record(.pending(count: pendingCount()))
  }
}
