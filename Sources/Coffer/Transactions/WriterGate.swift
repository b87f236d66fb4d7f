import CofferCrypto
import Dispatch
import Synchronization

/// Admits one write transaction of a database at a time, from before it takes its lock until all observers have been
/// notified of its end.
///
/// SQLite's lock would suffice for the data. This one also keeps observers' notifications in commit order, and lets writers
/// of one process wait for each other without polling.
final class WriterGate: Sendable {
  private let line = Lock(Line())
  private let owner = Atomic<UInt>(0)
  /// What remains to be done before the owner may write again: observers not yet notified of its last commit.
  private let pending = Lock<[@Sendable () -> Void]?>(nil)

  /// Runs `body` with the gate held.
  ///
  /// The holding thread is admitted again only while it delivers a commit, and after all other observers have been notified.
  ///
  /// - Parameters:
  ///   - lending: Lends the connection to the holder while this waits.
  ///   - cancellation: Ends the wait.
  func pass<Result>(
    timeout: Duration, lending: Lending?, cancellation: Cancellation? = nil, _ body: () throws -> Result
  ) throws -> Result {
    let thread = currentThread()
    if owner.load(ordering: .relaxed) == thread {
      guard isDelivering else { throw CofferError.nestedTransaction }
      deliverRest()
      // The inner transaction delivers on its own; then the outer one continues, with nothing left to deliver.
      pending.withLock { $0 = nil }
      defer { pending.withLock { $0 = [] } }
      return try body()
    }
    if let place = takeOrStandInLine() {
      let wait = { self.wait(at: place, until: .now() + timeout.dispatchInterval, cancellation) }
      guard lending?.parking(wait) ?? wait() else {
        try cancellation?.check()
        throw CofferError.busy
      }
    }
    owner.store(thread, ordering: .relaxed)
    defer {
      owner.store(0, ordering: .relaxed)
      handOver()
    }
    return try body()
  }

  // MARK: Waiting

  /// When the holder leaves, the first in line gets the gate immediately: latecomers cannot overtake.
  private struct Line {
    var isTaken = false
    var places: [Place] = []
  }

  /// A place in the line; signalled when its turn has come, or the wait should end.
  private final class Place: Sendable {
    let signal = DispatchSemaphore(value: 0)
  }

  /// - Returns: nil if the gate was free, and now belongs to the caller.
  private func takeOrStandInLine() -> Place? {
    line.withLock { line in
      guard line.isTaken else {
        line.isTaken = true
        return nil
      }
      let place = Place()
      line.places.append(place)
      return place
    }
  }

  /// - Returns: Whether the gate now belongs to the caller.
  private func wait(at place: Place, until deadline: DispatchTime, _ cancellation: Cancellation?) -> Bool {
    func wait() -> Bool {
      _ = place.signal.wait(timeout: deadline)
      // The turn may have come just as the time ran out.
      return line.withLock { line in
        guard let index = line.places.firstIndex(where: { $0 === place }) else { return true }
        line.places.remove(at: index)
        return false
      }
    }
    return cancellation?.interrupting({ place.signal.signal() }, wait) ?? wait()
  }

  private func handOver() {
    line.withLock { line in
      line.isTaken = !line.places.isEmpty
      if line.isTaken { line.places.removeFirst().signal.signal() }
    }
  }

  // MARK: Delivering

  /// Runs `deliveries` one after another; each of them may write, which first runs the rest.
  func deliver(_ deliveries: [@Sendable () -> Void]) {
    guard !deliveries.isEmpty else { return }
    pending.withLock { $0 = deliveries }
    deliverRest()
    pending.withLock { $0 = nil }
  }

  private func deliverRest() {
    while let next = pending.withLock({ rest in rest?.isEmpty == false ? rest?.removeFirst() : nil }) { next() }
  }

  /// Whether the end of a transaction is being delivered, during which writes are allowed.
  var isDelivering: Bool { pending.withLock { $0 != nil } }

  /// Whether the calling thread is inside a write transaction of this database, or delivers its end.
  var isHeldByThisThread: Bool { owner.load(ordering: .relaxed) == currentThread() }
}

extension Duration {
  /// In whole milliseconds, at most three decades.
  var dispatchInterval: DispatchTimeInterval {
    .milliseconds(
      Int(clamping: min(components.seconds, 1_000_000_000) * 1000 + components.attoseconds / 1_000_000_000_000_000))
  }
}
