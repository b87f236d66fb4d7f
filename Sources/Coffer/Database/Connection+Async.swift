extension Connection {
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
  package func performing<Result: Sendable>(
    _ body: @escaping @Sendable (Session, Cancellation) throws -> Result
  ) async throws -> Result {
    try await cancellable(body) { self.enqueue($0) }
  }

  /// The same for writes, after the changes made through proxies before.
  package func writing<Result: Sendable>(
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

  /// Queues a write after the changes made through proxies before.
  package func enqueueWrite(_ body: @escaping @Sendable (Swift.Result<Session, any Error>) -> Void) {
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
