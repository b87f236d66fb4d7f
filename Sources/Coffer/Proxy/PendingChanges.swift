import CofferCrypto
import CofferStorage
import Dispatch

/// Writes the pending changes of one proxy to the store.
///
/// The flush of a batch is queued on the connection when the batch is opened, so that the queue is in call order, unless the
/// policy delays it, or the caller waits for the commit and flushes on its own thread. It writes that batch and any older
/// unwritten ones in one transaction, newer changes winning.
final class PendingChanges: Sendable {
  private let connection: Connection
  private let policy: ConnectionProxy.FlushPolicy
  private let isReadOnly: Bool
  let state: ProxyState
  private let retries = Lock(Retries())
  let failures = Broadcast<ConnectionProxy.FlushFailure>()

  private struct Retries {
    /// How many flushes in a row have failed.
    var failureCount = 0
    var isQueued = false
  }

  init(connection: Connection, policy: ConnectionProxy.FlushPolicy, state: ProxyState) {
    self.connection = connection
    self.policy = policy
    isReadOnly = connection.database.isReadOnly
    self.state = state
    connection.onWillQueueWrite(self) { [weak self] in
      let number = self?.state.lock.withExclusive {
        self?.state.isNewestOpen = false
        self?.state.queuedWriteCount += 1
        return self?.state.lastNumber
      }
      return { [weak self] session in
        if let self, let number { try self.flush(through: number, session, .normal) }
      }
    }
    ExitFlush.register(self)
    if !connection.database.register(self) { state.lock.withExclusive { state.isClosed = true } }
  }

  deinit {
    connection.onWillQueueWrite(self, nil)
  }

  // MARK: Changes

  var count: Int { state.lock.withShared { state.changeCount } }

  /// Adds the change of one key.
  @inline(__always)
  func add(
    _ change: Mutation, _ key: String, in collection: String, durability: ConnectionProxy.Durability
  ) throws {
    // Few programs have a vault; without one, changes take the fast path.
    guard !state.core.vault.isThere.load(ordering: .relaxed) else {
      return try add([KeyChange(mutation: change, key: key, collection: collection)], durability: durability)
    }
    try change.checkSize(key, in: collection)
    try prepare(key, in: collection)
    try changing(durability) { state.add(change, key, in: collection) }
    state.record(.set(count: 1))
  }

  /// A change to one key among several.
  struct KeyChange {
    let mutation: Mutation
    let key: String
    let collection: String
  }

  /// Adds several changes in one step.
  func add(_ changes: [KeyChange], durability: ConnectionProxy.Durability) throws {
    try add(changes) { try changing(durability, $0) }
  }

  /// Adds several changes in one step, and waits for their flush without blocking a thread.
  nonisolated(nonsending) func add(_ changes: [KeyChange], durability: ConnectionProxy.Durability) async throws {
    try await changingWithoutBlocking(durability) { changing in try add(changes, changing) }
  }

  private func add(_ changes: [KeyChange], _ changing: (_ body: () -> Void) throws -> Void) throws {
    for change in changes {
      try change.mutation.checkSize(change.key, in: change.collection)
      try prepare(change.key, in: change.collection)
    }
    let changes = try changes.map(state.sealing)
    try changing {
      for change in changes { state.add(change.mutation, change.key, in: change.collection) }
    }
    state.record(.set(count: changes.count))
  }

  /// If there are listeners, the item has to be known before it changes.
  @inline(__always)
  private func prepare(_ key: String, in collection: String) throws {
    guard state.listeners.want(key, in: collection) else { return }
    // If it cannot be read now, the change is reported without its previous value.
    do { _ = try state.visible(key, in: collection) } catch CofferError.closed {
      throw CofferError.closed
    } catch {}
  }

  /// Removes all items of a collection up to now, pending and committed.
  func clear(_ collection: String, durability: ConnectionProxy.Durability) throws {
    try changing(durability) { state.clear(collection) }
  }

  /// The same, without blocking a thread.
  nonisolated(nonsending) func clear(_ collection: String, durability: ConnectionProxy.Durability) async throws {
    try await changingWithoutBlocking(durability) { changing in try changing { state.clear(collection) } }
  }

  /// Runs `body`, which may open a batch.
  @inline(__always)
  private func changing(_ durability: ConnectionProxy.Durability, _ body: () -> Void) throws {
    if durability != .asynchronous { try connection.checkMayWrite() }
    try changing(isFlushedByCaller: durability != .asynchronous, body)
    switch durability {
    case .asynchronous: break
    case .committed: try flushAndWait(.normal)
    case .synced: try flushAndWait(.full)
    }
  }

  /// - Parameter add: Makes the change, in the function that it is given.
  private nonisolated(nonsending) func changingWithoutBlocking(
    _ durability: ConnectionProxy.Durability, _ add: (_ changing: (() -> Void) throws -> Void) throws -> Void
  ) async throws {
    // From now on the change cannot be taken back.
    try Task.checkCancellation()
    if durability != .asynchronous { try connection.checkMayWrite() }
    try add { try changing(isFlushedByCaller: durability != .asynchronous, $0) }
    switch durability {
    case .asynchronous: break
    case .committed: try await flush(.normal)
    case .synced: try await flush(.full)
    }
  }

  @inline(__always)
  private func changing(isFlushedByCaller: Bool, _ body: () -> Void) throws {
    // A change that can never be written must not be queued.
    guard !isReadOnly else { throw CofferError.readOnly }
    try state.lock.withExclusive {
      guard !state.isClosed else { throw CofferError.closed }
      let number = state.lastNumber
      if state.listeners.areThere { state.endLargeEvent() }
      body()
      // With the lock held: a write queued after this returns has to come behind the flush. A caller that waits for the
      // commit flushes on its own thread.
      if state.lastNumber != number, !isFlushedByCaller { enqueueFlush(of: state.lastNumber) }
    }
  }

  /// Discards the changes of a key that no flush has taken.
  func reset(_ key: String, in collection: String) throws {
    if state.listeners.want(key, in: collection) { _ = try? state.visible(key, in: collection) }
    try resetting { state.reset(key, in: collection) }
  }

  /// Discards all changes that no flush has taken.
  ///
  /// - Parameter filter: The new fetch filter; nil leaves it.
  func reset(filter: CollectionFilter?? = nil) throws {
    try resetting {
      state.reset()
      if let filter { state.setFetchFilter(filter) }
    }
  }

  private func resetting(_ body: () -> Void) throws {
    try state.lock.withExclusive {
      guard !state.isClosed else { throw CofferError.closed }
      body()
    }
  }

  // MARK: Flushing

  /// Schedules the flush of a new batch.
  private func enqueueFlush(of number: UInt64) {
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
    let hasWork = state.lock.withShared { state.batches.contains { $0.number <= number } }
    if hasWork { try write(through: number, session, synchronization) {} }
    // The changes may be committed already, but not synced.
    if synchronization == .full, !(hasWork && session.hasCommitted) {
      try CofferError.translating { try session.synchronizeLog() }
    }
  }

  /// Writes all batches up to `number`, and what `body` writes after them, in one transaction.
  ///
  /// - Parameter didCommit: Runs with the exclusive lock held, when the batches count as committed and before anyone is
  ///   notified; receives whether no one else has committed since the known state, or nothing was known. Needed if `body`
  ///   writes something.
  private func write<Result>(
    through number: UInt64, _ session: Session, _ synchronization: SQLiteConnection.Synchronization,
    cancellation: Cancellation? = nil, didCommit: ((Bool) -> Void)? = nil, _ body: () throws -> Result
  ) throws -> Result {
    let stopwatch = state.core.stopwatch()
    var changeCount = 0
    var identity: CommitIdentity?
    var end: CommitNumber = 0
    let willCommit = { (commit: CommitIdentity?) in
      identity = commit
      self.state.lock.withExclusive {
        // Settle changes without effect while no one else can write: a replacement of an absent item must not apply to a
        // later one.
        guard let commit else { return _ = self.state.settle(through: number, commit: nil, in: end) }
        self.state.inFlight = (commit, number, hasMore: didCommit != nil)
        self.state.ownCommits.append(commit)
      }
    }
    // Before anyone is notified: if a listener writes, the batch must not be written again.
    let settle = { (committed: CommitNumber?) in
      self.state.onCommit?()
      let count = session.connection.commitCountAfterWrite
      self.state.lock.withExclusive {
        let commit = committed.map { ProxyState.FlushedCommit(number: $0, count: count) }
        let isNext = self.state.settle(
          through: number, commit: commit, in: committed ?? end, sealedIn: session.transaction.sealedChanges)
        didCommit?(isNext)
        self.state.forgetFollowers(session.transaction.followers)
      }
      self.retries.withLock { $0.failureCount = 0 }
      identity = nil
      guard let stopwatch, changeCount > 0 else { return }
      stopwatch.record { .flush(changeCount: changeCount, duration: $0) }
      stopwatch.meter.record(.pending(count: self.count))
    }
    defer {
      state.onSettling?()
      while state.lock.withExclusive({ state.settleSome() }) {}
      state.lock.withExclusive {
        // The changes that a failed flush had taken may be discarded again.
        state.takenNumber = 0
        if let identity {
          state.inFlight = nil
          state.ownCommits.removeAll { $0 == identity }
        }
      }
      state.sweep()
    }
    return try session.write(synchronization, cancellation: cancellation, willCommit: willCommit, onSuccess: settle) {
      let (taken, isFirst) = state.lock.withExclusive { (state.take(through: number), state.knownNumber < 0) }
      // From now on, commits of others trigger the search for a vault; an existing one has to be found here.
      if isFirst { try session.lookForVault() }
      session.transaction.expectedChangeCount = taken.reduce(0) { $0 + $1.items.count }
      changeCount = taken.reduce(0) { $0 + $1.count }
      stopwatch?.meter.record(.pending(count: self.count))
      for batch in taken { for collection in batch.cleared { try session.removeAll(in: collection.name) } }
      try state.forEachChange(of: taken, through: number) { try $0.write(to: session) }
      let result = try body()
      end = try CofferError.translating { try session.endOfLog().number }
      return result
    }
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
      state.isNewestOpen = false
      return (state.lastNumber, state.isClosed)
    }
    guard !isClosed else { throw CofferError.closed }
    return number
  }

  private func change<Result>(
    _ key: String, in collection: String, _ durability: ConnectionProxy.Durability, _ session: Session,
    after number: UInt64, cancellation: Cancellation? = nil, _ body: (HeldItem?) throws -> (HeldItem?, Result)
  ) throws -> Result {
    var before: HeldItem?
    var after: HeldItem?
    let didCommit = { (isNext: Bool) in
      self.state.didChange(key, in: collection, from: before, to: after, isKnown: isNext)
    }
    let synchronization: SQLiteConnection.Synchronization = durability == .synced ? .full : .normal
    return try write(through: number, session, synchronization, cancellation: cancellation, didCommit: didCommit) {
      before = try session.item(key, in: collection)
      let (new, result) = try body(before)
      after = new
      guard new != before else { return result }
      guard let new else {
        try session.apply(.removed, key, in: collection)
        return result
      }
      let change = Mutation.set(new)
      try change.checkSize(key, in: collection)
      try session.apply(change, key, in: collection)
      // A sealed item differs from the one that was to be set.
      if !session.transaction.sealedChanges.isEmpty { after = try session.storedItem(key, in: collection) }
      return result
    }
  }

  private var lastNumber: UInt64 { state.lock.withShared { state.lastNumber } }

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

  private func flush(
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

  /// Flushes, then accepts no more changes; stays open if that fails.
  ///
  /// If several calls run at once, one success closes it for all.
  ///
  /// - Returns: Whether this call closed it.
  @discardableResult
  func close() throws -> Bool {
    try connection.checkMayWrite()
    // No change may come between the last flush and the end.
    state.lock.withExclusive {
      state.isClosed = true
      state.closing.callCount += 1
    }
    do {
      try flushLast()
    } catch {
      state.onCloseFailure?()
      endClosing(hasSucceeded: false)
      throw error
    }
    return endClosing(hasSucceeded: true)
  }

  private func flushLast() throws {
    // Nothing is pending, and nothing was ever written: no connection is needed.
    guard count > 0 || !connection.isForLater else { return }
    do {
      // Another call also waits here until the first one's flush has ended.
      try flushAndWait(.normal)
    } catch CofferError.closed where count == 0 {
      // The database was closed first, with nothing left to write.
    }
  }

  /// - Returns: Whether this call closed it.
  @discardableResult
  private func endClosing(hasSucceeded: Bool) -> Bool {
    state.lock.withExclusive {
      state.closing.callCount -= 1
      let isFirst = hasSucceeded && !state.closing.isDone
      if hasSucceeded { state.closing.isDone = true }
      if state.closing.callCount == 0, !state.closing.isDone { state.isClosed = false }
      return isFirst
    }
  }

  /// Accepts changes again: the database could not be closed.
  func reopen() {
    state.lock.withExclusive {
      state.closing.isDone = false
      state.isClosed = false
    }
  }

  /// Flushes at the exit of the process; waits until `deadline` at most.
  func flushAtExit(deadline: DispatchTime) {
    guard count > 0, !connection.isInTransaction else { return }
    let isDone = DispatchSemaphore(value: 0)
    flush(.normal) { _ in isDone.signal() }
    _ = isDone.wait(timeout: deadline)
  }
}

extension PendingChanges: DatabaseProxy {
  func databaseDidClose() { state.listeners.finish() }
  func storeWasReplaced() { state.storeWasReplaced() }
  func vaultWasUnlocked() { state.vaultWasUnlocked() }
}

/// A weak reference to the pending changes of a proxy.
struct WeakPendingChanges {
  weak var changes: PendingChanges?
}
