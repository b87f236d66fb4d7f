import Coffer
import Dispatch

extension Connection {
  /// Runs `body` in a read transaction later, then calls `completion`.
  ///
  /// - Parameters:
  ///   - queue: Where `completion` runs; nil for the connection's own queue, which it then blocks.
  ///   - completion: Always called, with the result of `body` or the error.
  public func asyncRead<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void
  ) {
    enqueue { session in
      let result = Swift.Result<Result, any Error> {
        let session = try session.get()
        return try session.read { try body(ReadTransaction(context: TransactionContext(session: session))) }
      }
      self.complete(completion, result, on: queue)
    }
  }

  /// Runs `body` in a write transaction later, then calls `completion`.
  ///
  /// - Parameters:
  ///   - queue: Where `completion` runs; nil for the connection's own queue: later writes of this connection then wait for
  ///     it, and it can write itself.
  ///   - completion: Always called, with the result of `body` or the error.
  public func asyncReadWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void
  ) {
    enqueueWrite { session in
      let result = Swift.Result<Result, any Error> {
        let session = try session.get()
        return try session.write(.full) {
          try body(ReadWriteTransaction(context: TransactionContext(session: session)))
        }
      }
      self.complete(completion, result, on: queue)
    }
  }

  /// Calls a completion on `queue`, or here, where it can use the connection.
  private func complete<Result: Sendable>(
    _ completion: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void,
    _ result: Swift.Result<Result, any Error>, on queue: DispatchQueue?
  ) {
    if let queue {
      queue.async { completion(result) }
    } else {
      betweenTransactions { completion(result) }
    }
  }
}
