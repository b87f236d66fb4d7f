import Coffer
import Dispatch

extension Connection: DatabaseWriter {
  /// Runs `body` in a write transaction and commits: another name for `readWrite`.
  ///
  /// - Throws: As `readWrite`.
  public func write<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result {
    try readWrite(body)
  }

  /// Runs `body` in a write transaction and commits: another name for `readWrite`.
  ///
  /// - Throws: As `readWrite`.
  public func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result {
    try await readWrite(body)
  }

  /// Runs `body` with each operation committed separately, and each read seeing the newest snapshot.
  ///
  /// What has been committed stays, even if `body` throws. To group operations, use `inSavepoint`. No transaction can be
  /// left open.
  ///
  /// - Throws: The errors of `body`; as `readWrite`.
  public func writeWithoutTransaction<Result>(
    _ body: (borrowing ReadWriteTransaction) throws -> Result
  ) throws -> Result {
    try checkMayWrite()
    let earlierChanges = announceWrite()
    return try perform { session in
      for flush in earlierChanges { try flush(session) }
      return try session.autocommitting {
        try body(ReadWriteTransaction(context: TransactionContext(session: session)))
      }
    }
  }

  /// Runs `body` with each operation committed separately, without blocking a thread.
  ///
  /// If the task is cancelled, the next operation of `body` throws; what has been committed stays.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled.
  public func writeWithoutTransaction<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result {
    try await writing { session, cancellation in
      try session.autocommitting(cancellation: cancellation) {
        try body(ReadWriteTransaction(context: TransactionContext(session: session)))
      }
    }
  }

  /// Runs `body` in a write transaction later, then `completion` on the writer, before any later write.
  ///
  /// ```swift
  /// connection.asyncWrite { transaction in
  ///   try transaction.setObject("dark", forKey: "theme")
  /// } completion: { connection, result in
  ///   if case .success = result { show(try? connection.read { try $0.numberOfKeys() }) }
  /// }
  /// ```
  ///
  /// - Parameter completion: Always called, with this connection, which it may read and write, and the result of `body` or
  ///   the error.
  public func asyncWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result,
    completion: @escaping @Sendable (_ connection: Connection, _ result: Swift.Result<Result, any Error>) -> Void
  ) {
    asyncReadWrite(body, on: nil) { completion(self, $0) }
  }

  /// Runs `body` later, with each operation committed separately.
  ///
  /// - Parameter onError: Receives the error that `body` threw, or that prevented it from running; it may write.
  public func asyncWriteWithoutTransaction(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Void,
    onError: @escaping @Sendable (any Error) -> Void
  ) {
    enqueueWrite { session in
      do {
        let session = try session.get()
        try session.autocommitting { try body(ReadWriteTransaction(context: TransactionContext(session: session))) }
      } catch {
        self.betweenTransactions { onError(error) }
      }
    }
  }

  /// Runs `body` in this thread's current write transaction, or in one of its own if there is none.
  ///
  /// Inside `writeWithoutTransaction` of this connection, it runs in one of its own.
  ///
  /// Unsafe, because the caller may not expect changes within its transaction; the one exception to the rule that
  /// transactions do not nest.
  ///
  /// - Throws: As `readWrite`.
  public func unsafeReentrantWrite<Result>(
    _ body: (borrowing ReadWriteTransaction) throws -> Result
  ) throws -> Result {
    guard let session = sessionOfThisThreadsWrite else { return try readWrite(body) }
    return try session.inTransaction {
      try body(ReadWriteTransaction(context: TransactionContext(session: session)))
    }
  }

  /// Reads the last committed state on another thread, while the writer continues.
  ///
  /// It sees the state at the time of the call, and no later commits.
  ///
  /// ```swift
  /// let count = try connection.writeWithoutTransaction { transaction in
  ///   try transaction.setObject(1, forKey: "k")
  ///   return connection.concurrentRead { try $0.numberOfKeys() }  // counts "k"
  /// }
  /// print(try count.wait())
  /// ```
  ///
  /// Inside a write transaction the future fails with `CofferError.nestedTransaction`: its changes are not committed yet.
  public func concurrentRead<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadTransaction) throws -> Result
  ) -> DatabaseFuture<Result> {
    let future = DatabaseFuture<Result>()
    do {
      if isInWriteTransaction { throw CofferError.nestedTransaction }
      let reader = try database.takeReader()
      // Take the snapshot now.
      try reader.beginLongLivedReadTransaction()
      reader.asyncRead(body) { [database] result in
        _ = try? reader.endLongLivedReadTransaction()
        database.giveBack(reader)
        future.resolve(result)
      }
    } catch {
      future.resolve(.failure(error))
    }
    return future
  }
}
