import CofferStorage
import Dispatch

extension Connection: DatabaseWriter {
  /// Runs `body` in a write transaction and commits: another name of `readWrite`.
  ///
  /// - Throws: As `readWrite`.
  public func write<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result {
    try readWrite(body)
  }

  /// Runs `body` in a write transaction and commits: another name of `readWrite`.
  ///
  /// - Throws: As `readWrite`.
  public func write<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result
  ) async throws -> Result {
    try await readWrite(body)
  }

  /// Runs `body` so that each operation in it commits by itself, and each read sees the newest snapshot.
  ///
  /// What has been committed stays, also when `body` throws. For several operations that belong together there is
  /// `inSavepoint`. There is no way to leave a transaction open.
  ///
  /// - Throws: What `body` throws; as `readWrite`.
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

  /// Runs `body` so that each operation in it commits by itself, without blocking a thread.
  ///
  /// A task that is cancelled ends `body` with its next operation; what has been committed stays.
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

  /// Runs `body` in a write transaction later, and then `completion`, on the writer, before any later write.
  ///
  /// ```swift
  /// connection.asyncWrite { transaction in
  ///   try transaction.setObject("dark", forKey: "theme")
  /// } completion: { connection, result in
  ///   if case .success = result { show(try? connection.read { try $0.numberOfKeys() }) }
  /// }
  /// ```
  ///
  /// - Parameter completion: Always called, with this connection, which it may read and write, and with what `body` returned
  ///   or what went wrong.
  public func asyncWrite<Result: Sendable>(
    _ body: @escaping @Sendable (borrowing ReadWriteTransaction) throws -> Result,
    completion: @escaping @Sendable (_ connection: Connection, _ result: Swift.Result<Result, any Error>) -> Void
  ) {
    asyncReadWrite(body, on: nil) { completion(self, $0) }
  }

  /// Runs `body` later, so that each operation in it commits by itself.
  ///
  /// - Parameter onError: Gets what went wrong: what `body` threw, or why it could not run; it may write.
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

  /// Runs `body` in the write transaction that is under way on this thread, or else in one of its own.
  ///
  /// In `writeWithoutTransaction` of this connection it is one of its own.
  ///
  /// Unsafe, because the caller may not expect its transaction to change; the one exception to the rule that
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

  /// Reads the last committed state on another thread, while the writer goes on.
  ///
  /// The state is that of the call: what is committed afterwards is not seen.
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
      // Takes the snapshot here and now.
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

  /// Removes everything: all collections, their history, and what the change log says of them.
  ///
  /// - Throws: As `readWrite`.
  public func erase() throws {
    try readWrite { try $0.removeAllObjectsInAllCollections() }
  }

  /// Removes everything, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: As `readWrite`; `CancellationError` when the task was cancelled.
  public func erase() async throws {
    try await readWrite { try $0.removeAllObjectsInAllCollections() }
  }

  /// Rebuilds the store file without the room that removed items have left.
  ///
  /// It needs the write lock, and room in the log for a copy of the store.
  ///
  /// - Throws: As `readWrite`.
  public func vacuum() throws {
    try checkMayWrite()
    try perform { try $0.vacuum() }
  }

  /// Rebuilds the store file, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: As `readWrite`; `CancellationError` when the task was cancelled before its turn.
  public func vacuum() async throws {
    try await performing { session, cancellation in
      try cancellation.check()
      try session.vacuum()
    }
  }
}
