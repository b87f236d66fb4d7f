import CofferCrypto
import Dispatch

/// A result that comes later, from another thread.
public final class DatabaseFuture<Value: Sendable>: Sendable {
  private let result = Lock<Result<Value, any Error>?>(nil)
  private let isDone = DispatchGroup()

  init() {
    isDone.enter()
  }

  func resolve(_ value: Result<Value, any Error>) {
    result.withLock { $0 = value }
    isDone.leave()
  }

  /// Waits for the result, blocking the calling thread; from anywhere, and as often as you like.
  ///
  /// - Throws: What went wrong.
  public func wait() throws -> Value {
    isDone.wait()
    return try result.withLock { $0 }!.get()
  }

  /// Waits for the result without blocking a thread.
  public var value: Value {
    get async throws {
      await withCheckedContinuation { continuation in
        isDone.notify(queue: .global()) { continuation.resume() }
      }
      return try wait()
    }
  }
}
