extension Connection {
  /// Erases everything: all collections, their history and its limits, and their keys in the change log, which says that
  /// it was done, and by whom.
  ///
  /// - Throws: As `readWrite`.
  public func erase() throws {
    try readWrite { try $0.session.eraseEverything() }
  }

  /// Removes everything, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: As `readWrite`; `CancellationError` when the task was cancelled.
  public func erase() async throws {
    try await readWrite { try $0.session.eraseEverything() }
  }

  /// Rebuilds the store file, reclaiming the space of removed items.
  ///
  /// It needs the write lock, and space in the log for a copy of the store.
  ///
  /// - Throws: As `readWrite`.
  public func vacuum() throws {
    try checkMayWrite()
    try perform { try $0.vacuum() }
  }

  /// Checkpoints the whole log and truncates it, so that the file has its final size.
  ///
  /// - Returns: Whether that was possible: a reader may still need the log.
  package func checkpoint() throws -> Bool {
    try perform { session in
      try CofferError.translating { try session.connection.checkpointAndTruncate {} }
    }
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
