import CofferCrypto
import Dispatch
import Synchronization

/// Whether the task that waits for a transaction was cancelled.
package final class Cancellation: Sendable {
  private let flag = Atomic<Bool>(false)
  private let signal = DispatchSemaphore(value: 0)
  private let interruption = Lock<(@Sendable () -> Void)?>(nil)
  /// Runs when a transaction waits for another's lock; for tests.
  @TaskLocal static var onWait: (@Sendable () -> Void)?
  private let onWait = Cancellation.onWait

  func cancel() {
    flag.store(true, ordering: .sequentiallyConsistent)
    signal.signal()
    interruption.withLock { $0 }?()
  }

  var isCancelled: Bool { flag.load(ordering: .relaxed) }

  func check() throws {
    if isCancelled { throw CancellationError() }
  }

  /// Runs `wait`, a blocking wait, and calls `interrupt` as soon as the task is cancelled.
  func interrupting<Result>(_ interrupt: @escaping @Sendable () -> Void, _ wait: () -> Result) -> Result {
    onWait?()
    interruption.withLock { $0 = interrupt }
    defer { interruption.withLock { $0 = nil } }
    if flag.load(ordering: .sequentiallyConsistent) { interrupt() }
    return wait()
  }

  /// Waits for cancellation, for at most `timeout`.
  ///
  /// - Returns: Whether the task was cancelled.
  func wait(for timeout: DispatchTimeInterval) -> Bool {
    onWait?()
    guard signal.wait(timeout: .now() + timeout) == .success else { return false }
    signal.signal()
    return true
  }
}
