import CofferCrypto
import Dispatch

/// Lends a connection to the thread that holds the writer gate, while the connection's own thread waits for that gate.
///
/// Inside a write, a thread may read on other connections, and write on them while the end of the write is delivered.
/// Without the loan, the two threads would deadlock.
final class Lending: Sendable {
  private struct State {
    /// Whether the connection's own thread waits for the gate.
    var isParked = false
    /// The claim of a thread that wants the connection.
    ///
    /// There is only one gate, so there is at most one claim.
    var claim: Claim?
    /// The claim that has it while its own thread is parked.
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
  /// - Parameter queue: The connection's queue.
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

  /// Called when the queue reaches a claim; grants it unless it has been granted already.
  private func grant(_ claim: Claim) -> Bool {
    state.withLock { state in
      guard state.claim === claim else { return false }
      state.claim = nil
      claim.isGranted.signal()
      return true
    }
  }

  /// Runs `wait`, in which the connection's own thread waits for the gate; any loan has ended when this returns.
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
    // Needed only if waiting was given up: otherwise the gate is not free before the loan has ended.
    loan?.isReturned.wait()
    return result
  }
}
