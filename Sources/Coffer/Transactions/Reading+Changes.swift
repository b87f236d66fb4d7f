extension Reading where Self: ~Copyable {
  // MARK: Earlier commits

  /// What was committed after a snapshot, up to the one that the transaction sees, the oldest commit first.
  ///
  /// ```swift
  /// guard let commits = try transaction.changes(since: lastSeen) else { return reloadEverything() }
  /// for key in commits.changedKeys(inCollection: "ui") { reload(key) }
  /// lastSeen = try transaction.snapshot()
  /// ```
  ///
  /// The store remembers the last 10,000 commits, or fewer that changed very many keys. Where a collection that was there
  /// then has been removed, its name is gone, and the notification of its removal says
  /// ``Commit/didClearAllCollections``: any key may have changed.
  ///
  /// - Parameter snapshot: What `snapshot()` gave, in this process or another.
  /// - Returns: nil when that is not known any more, or the store never had such a snapshot: any key may have changed.
  public borrowing func changes(since snapshot: UInt64) throws -> [Commit]? {
    try session.changes(since: snapshot)
  }
}
