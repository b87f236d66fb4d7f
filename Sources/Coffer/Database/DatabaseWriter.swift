import CofferCrypto
import CofferStorage
import Dispatch

/// What reads from a database.
public protocol DatabaseReader: AnyObject, Sendable {
  /// Runs `body` in a read transaction.
  func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result
  /// Runs `body` in a read transaction, without blocking a thread.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
  ) async throws -> Result
  /// Runs `body` in a read transaction later, and then `completion`.
  func asyncRead<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result, on queue: DispatchQueue?,
    completion: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void)
}

/// What writes to a database: transactions one after another.
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
  /// Runs `body` so that each operation in it commits by itself.
  func writeWithoutTransaction<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result
  /// The same without blocking a thread.
  func writeWithoutTransaction<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result
  /// Runs `body` in a write transaction later, and then `completion`, on the writer, before any later write.
  func asyncWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result,
    completion: @escaping @Sendable (Connection, Swift.Result<Result, any Error>) -> Void)
  /// Runs `body` later, so that each operation in it commits by itself.
  func asyncWriteWithoutTransaction(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Void,
    onError: @escaping @Sendable (any Error) -> Void)
  /// Runs `body` in the write transaction that is under way on this thread, or else in one of its own.
  func unsafeReentrantWrite<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result
  /// Reads the last committed state on another thread, while the writer goes on.
  func concurrentRead<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
  ) -> DatabaseFuture<Result>
  /// Removes everything.
  func erase() throws
  /// The same without blocking a thread.
  func erase() async throws
  /// Rebuilds the store file without the room that removed items have left.
  func vacuum() throws
  /// The same without blocking a thread.
  func vacuum() async throws
}

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
