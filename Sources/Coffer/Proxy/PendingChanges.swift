import CofferCrypto
import CofferStorage
import Dispatch

/// Writes the pending changes of one proxy to the store.
///
/// The flush of a batch is queued on the connection when the batch is opened, so that the queue is in call order, unless the
/// policy delays it, or the caller waits for the commit and flushes on its own thread. It writes that batch and any older
/// unwritten ones in one transaction, newer changes winning.
final class PendingChanges: Sendable {
  let connection: Connection
  let policy: ConnectionProxy.FlushPolicy
  let isReadOnly: Bool
  let state: ProxyState
  let retries = Lock(Retries())
  let failures = Broadcast<ConnectionProxy.FlushFailure>()

  struct Retries {
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
        self?.state.pending.queueOtherWrite()
        return self?.state.pending.lastNumber
      }
      return { [weak self] session in
        if let self, let number { try self.flush(through: number, session, .normal) }
      }
    }
    ExitFlush.register(self)
    if !connection.database.register(self) { state.lock.withExclusive { state.setClosed(true) } }
  }

  deinit {
    connection.onWillQueueWrite(self, nil)
  }

  // MARK: Changes

  var count: Int { state.lock.withShared { state.pending.changeCount } }

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
    if state.listeners.areThere { try prepare(key, in: collection) }
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

  /// Reads an item that a listener wants, since it has to be known before it changes.
  @inline(never)
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
      guard !state.pending.isClosed else { throw CofferError.closed }
      let number = state.pending.lastNumber
      if state.listeners.areThere { state.endLargeEvent() }
      body()
      // With the lock held: a write queued after this returns has to come behind the flush. A caller that waits for the
      // commit flushes on its own thread.
      if state.pending.lastNumber != number, !isFlushedByCaller { enqueueFlush(of: state.pending.lastNumber) }
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
    _ = try resetting {
      state.reset()
      return filter.flatMap(state.setFetchFilter)
    }
  }

  private func resetting<Result>(_ body: () -> Result) throws -> Result {
    try state.lock.withExclusive {
      guard !state.pending.isClosed else { throw CofferError.closed }
      return body()
    }
  }

  // MARK: Closing

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
      state.setClosed(true)
      state.pending.closing.callCount += 1
    }
    do {
      try flushLast()
    } catch {
      state.hooks.onCloseFailure?()
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
      state.pending.closing.callCount -= 1
      let isFirst = hasSucceeded && !state.pending.closing.isDone
      if hasSucceeded { state.pending.closing.isDone = true }
      if state.pending.closing.callCount == 0, !state.pending.closing.isDone { state.setClosed(false) }
      return isFirst
    }
  }

  /// Accepts changes again: the database could not be closed.
  func reopen() {
    state.lock.withExclusive {
      state.pending.closing.isDone = false
      state.setClosed(false)
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
