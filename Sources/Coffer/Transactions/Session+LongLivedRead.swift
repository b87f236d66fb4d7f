import CofferStorage

extension Session {
  /// Pins the newest snapshot.
  ///
  /// - Returns: What was committed since the one that was pinned before.
  func beginLongLivedRead() throws -> [CommitNotification] {
    guard mode == .idle else { throw CofferError.nestedTransaction }
    let earlier = isLongLived ? pinnedSequence : nil
    if !isLongLived {
      core.feed.retain()
      core.longLivedReadCount.add(1, ordering: .relaxed)
    }
    isLongLived = true
    hasSnapshotExpired = false
    do {
      try CofferError.translating { try connection.rollback() }
      try beginRead()
      // The snapshot is taken by the first read.
      pinnedSequence = try CofferError.translating { try changeLog.lastSequence() }
      let jumped = try earlier.map(notifications) ?? []
      pinnedNames = try CofferError.translating { try CommitFeed.names(connection) }
      return jumped
    } catch {
      endPinning()
      throw error
    }
  }

  /// Lets go of the snapshot.
  ///
  /// - Returns: What was committed since it was taken.
  func endLongLivedRead() throws -> [CommitNotification] {
    guard isLongLived else { return [] }
    guard mode == .idle else { throw CofferError.nestedTransaction }
    let pinned = pinnedSequence
    try? connection.rollback()
    // Before letting go, what our own commits say beside the log is still kept.
    defer { endPinning() }
    try beginRead()
    defer { try? connection.rollback() }
    return try notifications(after: pinned)
  }

  private func endPinning() {
    try? connection.rollback()
    isLongLived = false
    hasSnapshotExpired = false
    core.feed.release()
    core.longLivedReadCount.subtract(1, ordering: .relaxed)
  }

  /// Ends a long-lived read that keeps the log from being folded in.
  func expireLongLivedRead() {
    guard isLongLived, !hasSnapshotExpired else { return }
    try? connection.rollback()
    hasSnapshotExpired = true
  }

  private func notifications(after sequence: Int64) throws -> [CommitNotification] {
    try CofferError.translating {
      guard let rows = try changeLog.rows(after: sequence) else {
        return [.unknown(through: try changeLog.lastSequence())]
      }
      // A collection that was removed since has its name only in the snapshot before.
      let names = rows.isEmpty ? [:] : pinnedNames.merging(try CommitFeed.names(connection)) { $1 }
      return rows.map { core.feed.notification(of: $0, names: names) }
    }
  }

  /// The commits after a snapshot; nil when they are not all known.
  func changes(since snapshot: UInt64) throws -> [CommitNotification]? {
    try reading {
      // A snapshot of the future was another store's, or this one's before it was put back to an older state.
      guard let sequence = Int64(exactly: snapshot), sequence <= (try changeLog.lastSequence()),
        let rows = try changeLog.rows(after: sequence)
      else { return nil }
      let names = rows.isEmpty ? [:] : try CommitFeed.names(connection)
      return rows.map { core.feed.notification(of: $0, names: names, isUnnamedRemovalOfAll: true) }
    }
  }
}
