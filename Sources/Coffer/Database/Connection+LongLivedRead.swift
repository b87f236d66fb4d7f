extension Connection {
  /// Pins the newest snapshot: all reads on this connection see it until ``endLongLivedReadTransaction()``.
  ///
  /// A user interface reads from it, and moves on when it is ready to:
  ///
  /// ```swift
  /// let jumped = try connection.beginLongLivedReadTransaction()
  /// if jumped.hasChange(inCollection: "ui") { reload() }
  /// ```
  ///
  /// Writes, vacuum and backup on this connection throw meanwhile. The store's log cannot be folded in past the snapshot;
  /// where it grows beyond `Database.Options.logByteLimit`, the read is ended, and reads throw
  /// `CofferError.snapshotExpired` until this is called again.
  ///
  /// - Returns: When a snapshot was pinned already: what was committed between it and the new one, in order.
  /// - Throws: `CofferError.nestedTransaction` inside a transaction of this connection; `.closed`, `.damaged`,
  ///   `.inputOutput`.
  @discardableResult
  public func beginLongLivedReadTransaction() throws -> [Commit] {
    try perform { try $0.beginLongLivedRead() }
  }

  /// Lets go of the pinned snapshot; without one it does nothing.
  ///
  /// - Returns: What was committed since it was taken, in order.
  /// - Throws: As `beginLongLivedReadTransaction()`.
  @discardableResult
  public func endLongLivedReadTransaction() throws -> [Commit] {
    try perform { try $0.endLongLivedRead() }
  }

  /// Whether a snapshot is pinned, expired or not.
  ///
  /// - Throws: As `beginLongLivedReadTransaction()`.
  public var isInLongLivedReadTransaction: Bool {
    get throws { try perform { $0.isLongLived } }
  }

  /// Ends a long-lived read that keeps the log from being folded in.
  func expireLongLivedRead() {
    enqueue { session in (try? session.get())?.expireLongLivedRead() }
  }
}
