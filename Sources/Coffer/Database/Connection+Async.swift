import Dispatch

extension Connection {
  // MARK: async, await

  /// Runs `body` in a read transaction, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: What the synchronous form throws; `CancellationError` when the task was cancelled, also while `body` runs.
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
  /// A task that is cancelled rolls back, up to the commit: `body` is ended by its next operation on the transaction.
  /// Cancelled before its turn, `body` does not run at all.
  ///
  /// - Throws: What the synchronous form throws; `CancellationError` when the task was cancelled.
  public func readWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result {
    try await writing { session, cancellation in
      try session.write(.full, cancellation: cancellation) {
        try body(ReadWriteTransaction(context: TransactionContext(session: session)))
      }
    }
  }

  /// Runs `body` on the connection, in an asynchronous call that can be cancelled.
  func performing<Result: Sendable>(
    _ body: @escaping @Sendable (Session, Cancellation) throws -> Result
  ) async throws -> Result {
    try await cancellable(body) { self.enqueue($0) }
  }

  /// The same for writes, behind what proxies were given before.
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

  /// Runs `body` in a read transaction later, and then `completion`.
  ///
  /// - Parameters:
  ///   - queue: Where the completion runs; nil for the connection's own queue, which waits for it.
  ///   - completion: Always called, with what `body` returned or what went wrong.
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

  /// Runs `body` in a write transaction later, and then `completion`.
  ///
  /// - Parameters:
  ///   - queue: Where the completion runs; nil for the connection's own queue: later writes of this connection wait for it
  ///     then, and it may write itself.
  ///   - completion: Always called, with what `body` returned or what went wrong.
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

  /// Calls a completion on `queue`, or here, where it may use the connection.
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

  /// Queues a write behind what proxies were given before.
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

  /// Unchecked: made by the caller, called by the queue, once.
  private struct SendableFlushes: @unchecked Sendable {
    let flushes: [FlushOfEarlierChanges]
  }
}
