import Synchronization

/// Whether the task that waits for a transaction was cancelled.
final class Cancellation: Sendable {
  private let isCancelled = Atomic<Bool>(false)

  func cancel() {
    isCancelled.store(true, ordering: .relaxed)
  }

  func check() throws {
    if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
  }
}
