import Dispatch

extension Connection {
  // MARK: async, await

  /// Runs `body` in a read transaction, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: The errors of the synchronous form; `CancellationError` when the task was cancelled, even while `body` runs.
  public func read<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
  ) async throws -> Result {
    try await performing { session, cancellation in
      try session.read(cancellation: cancellation) {
        try body(ReadTransaction(context: TransactionContext(session: session)))
      }
    }
  }

  /// Runs `body` in a write transaction and commits, as the synchronous form does, without blocking a thread.
  ///
  /// Cancelling the task rolls back, at any time before the commit: the next operation of `body` on the transaction throws.
  /// If the task is cancelled before its turn, `body` does not run at all.
  ///
  /// - Throws: The errors of the synchronous form; `CancellationError` when the task was cancelled.
  public func readWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result {
    try await writing { session, cancellation in
      try session.write(.full, cancellation: cancellation) {
        try body(ReadWriteTransaction(context: TransactionContext(session: session)))
      }
    }
  }

  /// Runs `body` on the connection, in an asynchronous, cancellable call.
  func performing<Result: Sendable>(
    _ body: @escaping @Sendable (Session, Cancellation) throws -> Result
  ) async throws -> Result {
    try await cancellable(body) { self.enqueue($0) }
  }

  /// The same for writes, after the changes made through proxies before.
  func writing<Result: Sendable>(
    _ body: @escaping @Sendable (Session, Cancellation) throws -> Result
  ) async throws -> Result {
    try await cancellable(body) { self.enqueueWrite($0) }
  }

  private func cancellable<Result: Sendable>(
    _ body: @escaping @Sendable (Session, Cancellation) throws -> Result,
    enqueue: (@escaping @Sendable (Swift.Result<Session, any Error>) -> Void) -> Void
  ) async throws -> Result {
    let cancellation = Cancellation()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        enqueue { session in
          continuation.resume(with: Swift.Result { try body(session.get(), cancellation) })
        }
      }
    } onCancel: {
      cancellation.cancel()
    }
  }

  // MARK: Completion blocks

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

  /// Queues a write after the changes made through proxies before.
  func enqueueWrite(_ body: @escaping @Sendable (Swift.Result<Session, any Error>) -> Void) {
    let earlierChanges = SendableFlushes(flushes: announceWrite())
    enqueue { session in
      body(
        Swift.Result {
          let session = try session.get()
          for flush in earlierChanges.flushes { try flush(session) }
          return session
        })
    }
  }

  /// Unchecked: created by the caller, called once by the queue.
  private struct SendableFlushes: @unchecked Sendable {
    let flushes: [FlushOfEarlierChanges]
  }
}
