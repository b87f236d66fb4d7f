extension Connection {
  /// Pins the newest snapshot: all reads on this connection see it until ``endLongLivedReadTransaction()``.
  ///
  /// A user interface reads from it, and moves to a newer one when it is ready:
  ///
  /// ```swift
  /// let jumped = try connection.beginLongLivedReadTransaction()
  /// if jumped.contains(where: { $0.concerns(collection: "ui") }) { reload() }
  /// ```
  ///
  /// Meanwhile, writes, vacuum and backup on this connection throw. The store's log cannot be checkpointed past the
  /// snapshot. If it grows beyond `Database.Options.logByteLimit`, the read is ended, and reads throw
  /// `CofferError.snapshotExpired` until this is called again.
  ///
  /// - Returns: If a snapshot was pinned before, the commits between that one and the new one, in order.
  /// - Throws: `CofferError.nestedTransaction` inside a transaction of this connection; `.closed`, `.damaged`,
  ///   `.inputOutput`.
  @discardableResult
  public func beginLongLivedReadTransaction() throws -> [Commit] {
    try perform { try $0.beginLongLivedRead() }
  }

  /// Releases the pinned snapshot; does nothing without one.
  ///
  /// - Returns: The commits since it was taken, in order.
  /// - Throws: As `beginLongLivedReadTransaction()`.
  @discardableResult
  public func endLongLivedReadTransaction() throws -> [Commit] {
    try perform { try $0.endLongLivedRead() }
  }

  /// Whether a snapshot is pinned, expired or not.
  ///
  /// - Throws: As `beginLongLivedReadTransaction()`.
  package var isInLongLivedReadTransaction: Bool {
    get throws { try perform { $0.pinned != nil } }
  }

  /// Ends a long-lived read that prevents checkpoints of the log.
  func expireLongLivedRead() {
    enqueue { session in (try? session.get())?.expireLongLivedRead() }
  }
}
