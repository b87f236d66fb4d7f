import CofferCrypto
import Dispatch
import Synchronization

/// Lets one write transaction of a database at a time through, from before its lock until all have heard of its end.
///
/// SQLite's own lock would do for the data. This one also keeps the order in which observers hear of commits, and makes
/// writers of one process wait for each other without polling.
final class WriterGate: Sendable {
  private let semaphore = DispatchSemaphore(value: 1)
  private let owner = Atomic<UInt>(0)
  /// What is still to be done before the owner may write again: observers that have not heard of its last commit.
  private let pending = Lock<[@Sendable () -> Void]?>(nil)

  /// Runs `body` with the gate held.
  ///
  /// The thread that holds it gets through again only while it delivers a commit, and after everyone else has heard of it.
  ///
  /// - Parameters:
  ///   - lending: Lends the connection to the holder as long as this waits.
  ///   - cancellation: Ends the waiting.
  func pass<Result>(
    timeout: Duration, lending: Lending?, cancellation: Cancellation? = nil, _ body: () throws -> Result
  ) throws -> Result {
    let thread = currentThread()
    if owner.load(ordering: .relaxed) == thread {
      guard isDelivering else { throw CofferError.nestedTransaction }
      deliverRest()
      // The inner transaction delivers on its own; then the outer one, which has nothing left, goes on.
      pending.withLock { $0 = nil }
      defer { pending.withLock { $0 = [] } }
      return try body()
    }
    if semaphore.wait(timeout: .now()) == .timedOut {
      let wait = { self.wait(until: .now() + timeout.dispatchInterval, cancellation) }
      guard lending?.parking(wait) ?? wait() else {
        try cancellation?.check()
        throw CofferError.busy
      }
    }
    owner.store(thread, ordering: .relaxed)
    defer {
      owner.store(0, ordering: .relaxed)
      semaphore.signal()
    }
    return try body()
  }

  /// How often a task that waits looks whether it was cancelled: a semaphore cannot be waited for beside another.
  private static let step = DispatchTimeInterval.milliseconds(5)

  private func wait(until deadline: DispatchTime, _ cancellation: Cancellation?) -> Bool {
    guard let cancellation else { return semaphore.wait(timeout: deadline) == .success }
    while semaphore.wait(timeout: .now()) == .timedOut {
      if DispatchTime.now() >= deadline || cancellation.wait(for: Self.step) { return false }
    }
    return true
  }

  /// Runs `deliveries` one after another; each of them may write, which runs the rest first.
  func deliver(_ deliveries: [@Sendable () -> Void]) {
    guard !deliveries.isEmpty else { return }
    pending.withLock { $0 = deliveries }
    deliverRest()
    pending.withLock { $0 = nil }
  }

  private func deliverRest() {
    while let next = pending.withLock({ rest in rest?.isEmpty == false ? rest?.removeFirst() : nil }) { next() }
  }

  /// Whether the end of a transaction is being delivered, from inside of which a write is allowed.
  var isDelivering: Bool { pending.withLock { $0 != nil } }

  /// Whether the calling thread is inside a write transaction of this database, or in its deliveries.
  var isHeldByThisThread: Bool { owner.load(ordering: .relaxed) == currentThread() }
}

extension Duration {
  /// In whole milliseconds, three decades at most.
  var dispatchInterval: DispatchTimeInterval {
    .milliseconds(
      Int(clamping: min(components.seconds, 1_000_000_000) * 1000 + components.attoseconds / 1_000_000_000_000_000))
  }
}
