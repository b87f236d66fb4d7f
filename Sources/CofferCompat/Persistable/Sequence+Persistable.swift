import Coffer

// A transaction cannot be stored, so no function can be passed to `map`; use these at the end of a chain instead.

extension Sequence where Element: Persistable {
  /// Writes these items and their metadata, all or none.
  ///
  /// ```swift
  /// try photos.filter(\.isNew).write(to: transaction)
  /// ```
  ///
  /// - Throws: As `ReadWriteTransaction.write(_:)`.
  public func write(to transaction: borrowing ReadWriteTransaction) throws {
    try transaction.write(self)
  }

  /// Removes these items, all or none; missing ones are ignored.
  ///
  /// - Throws: As `ReadWriteTransaction.removeObjects(forKeys:inCollection:)`.
  public func remove(from transaction: borrowing ReadWriteTransaction) throws {
    try transaction.remove(self)
  }
}

extension Sequence where Self: Sendable, Element: Persistable {
  /// Writes these items and their metadata in a transaction of their own.
  ///
  /// - Throws: As `DatabaseWriter.write(_:)`.
  public func write(to writer: some DatabaseWriter) throws {
    try writer.write(self)
  }

  /// Writes these items and their metadata in a transaction of their own, without blocking a thread.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled.
  public func write(to writer: some DatabaseWriter) async throws {
    try await writer.write(self)
  }

  /// Removes these items in a transaction of their own; missing ones are ignored.
  ///
  /// - Throws: As `DatabaseWriter.write(_:)`.
  public func remove(from writer: some DatabaseWriter) throws {
    try writer.remove(self)
  }

  /// Removes these items in a transaction of their own, without blocking a thread.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled.
  public func remove(from writer: some DatabaseWriter) async throws {
    try await writer.remove(self)
  }
}
