import Coffer
import Dispatch
import Synchronization

/// Reads from a database.
public protocol DatabaseReader: AnyObject, Sendable {
  /// Runs `body` in a read transaction.
  func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result
  /// Runs `body` in a read transaction, without blocking a thread.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
  ) async throws -> Result
  /// Runs `body` in a read transaction later, then calls `completion`.
  func asyncRead<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result, on queue: DispatchQueue?,
    completion: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void)
}

/// Writes to a database, one transaction at a time.
///
/// ```swift
/// let writer: any DatabaseWriter = try database.makeConnection()
/// try writer.write { try $0.setObject(3, forKey: "retries") }
/// ```
public protocol DatabaseWriter: DatabaseReader {
  /// Runs `body` in a write transaction and commits.
  func write<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result
  /// Runs `body` in a write transaction and commits, without blocking a thread.
  func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result
  /// Runs `body` with each operation committed separately.
  func writeWithoutTransaction<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result
  /// The same without blocking a thread.
  func writeWithoutTransaction<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result
  /// Runs `body` in a write transaction later, then `completion` on the writer, before any later write.
  func asyncWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result,
    completion: @escaping @Sendable (Connection, Swift.Result<Result, any Error>) -> Void)
  /// Runs `body` later, with each operation committed separately.
  func asyncWriteWithoutTransaction(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Void,
    onError: @escaping @Sendable (any Error) -> Void)
  /// Runs `body` in this thread's current write transaction, or in one of its own if there is none.
  func unsafeReentrantWrite<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result
  /// Reads the last committed state on another thread, while the writer continues.
  func concurrentRead<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
  ) -> DatabaseFuture<Result>
  /// Removes everything.
  func erase() throws
  /// The same without blocking a thread.
  func erase() async throws
  /// Rebuilds the store file, reclaiming the space of removed items.
  func vacuum() throws
  /// The same without blocking a thread.
  func vacuum() async throws
}

/// A result that arrives later, from another thread.
public final class DatabaseFuture<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let isDone = DispatchGroup()

  init() {
    isDone.enter()
  }

  func resolve(_ value: Result<Value, any Error>) {
    result.withLock { $0 = value }
    isDone.leave()
  }

  /// Waits for the result, blocking the calling thread; can be called from any thread, any number of times.
  ///
  /// - Throws: The error of the operation.
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
