import CofferCrypto
import Dispatch

/// Lends a connection to the thread that holds the writers' gate, while the connection's own thread waits for that gate.
///
/// Inside a write a thread may read on other connections, and write on them while the end of the write is delivered.
/// Without the loan each of the two would wait for the other.
final class Lending: Sendable {
  private struct State {
    /// Whether the connection's own thread waits for the gate.
    var isParked = false
    /// Who wants the connection.
    ///
    /// There is only one gate, so it is never more than one.
    var claim: Claim?
    /// Who has it while its own thread is parked.
    var loan: Claim?
  }

  private final class Claim: Sendable {
    let isGranted = DispatchSemaphore(value: 0)
    let isReturned = DispatchSemaphore(value: 0)
  }

  private let state = Lock(State())

  /// Whether the connection's own thread waits for the gate.
  var isParked: Bool { state.withLock { $0.isParked } }

  /// Runs `body` when the connection is free, or its own thread is parked; only the holder of the gate may call this.
  ///
  /// - Parameter queue: What the connection runs on.
  func borrow<Result>(from queue: DispatchQueue, _ body: () throws -> Result) rethrows -> Result {
    let claim = Claim()
    let isParked = state.withLock { state in
      if state.isParked { state.loan = claim } else { state.claim = claim }
      return state.isParked
    }
    if !isParked {
      queue.async {
        guard self.grant(claim) else { return }
        claim.isReturned.wait()
      }
      claim.isGranted.wait()
    }
    defer {
      state.withLock { $0.loan = nil }
      claim.isReturned.signal()
    }
    return try body()
  }

  /// The queue has come to a claim, if it has not been granted meanwhile.
  private func grant(_ claim: Claim) -> Bool {
    state.withLock { state in
      guard state.claim === claim else { return false }
      state.claim = nil
      claim.isGranted.signal()
      return true
    }
  }

  /// Runs `wait`, in which the connection's own thread waits for the gate; the connection is its own again afterwards.
  func parking<Result>(_ wait: () -> Result) -> Result {
    state.withLock { state in
      state.isParked = true
      guard let claim = state.claim else { return }
      state.claim = nil
      state.loan = claim
      claim.isGranted.signal()
    }
    let result = wait()
    let loan = state.withLock { state in
      state.isParked = false
      return state.loan
    }
    // Only where it gave up waiting: the gate is not free before the loan has ended.
    loan?.isReturned.wait()
    return result
  }
}
