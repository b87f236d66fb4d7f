import Dispatch
import Synchronization

/// Whether the task that waits for a transaction was cancelled.
final class Cancellation: Sendable {
  private let flag = Atomic<Bool>(false)
  private let signal = DispatchSemaphore(value: 0)
  /// Runs when a lock of others is waited for; for tests.
  @TaskLocal static var onWait: (@Sendable () -> Void)?
  private let onWait = Cancellation.onWait

  func cancel() {
    flag.store(true, ordering: .relaxed)
    signal.signal()
  }

  var isCancelled: Bool { flag.load(ordering: .relaxed) }

  func check() throws {
    if isCancelled { throw CancellationError() }
  }

  /// Waits for cancellation, no longer than `timeout`.
  ///
  /// - Returns: Whether it came.
  func wait(for timeout: DispatchTimeInterval) -> Bool {
    onWait?()
    guard signal.wait(timeout: .now() + timeout) == .success else { return false }
    signal.signal()
    return true
  }
}
