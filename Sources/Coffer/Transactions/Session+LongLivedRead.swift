import CofferStorage

extension Session {
  /// Pins the newest snapshot.
  ///
  /// - Returns: What was committed since the one that was pinned before.
  func beginLongLivedRead() throws -> [Commit] {
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
      let jumped = try earlier.map(commits) ?? []
      // A collection that is removed later has its name only here.
      try CofferError.translating { try core.commits.learnNames(connection) }
      return jumped
    } catch {
      endPinning()
      throw error
    }
  }

  /// Lets go of the snapshot.
  ///
  /// - Returns: What was committed since it was taken.
  func endLongLivedRead() throws -> [Commit] {
    guard isLongLived else { return [] }
    guard mode == .idle else { throw CofferError.nestedTransaction }
    let pinned = pinnedSequence
    try? connection.rollback()
    // Before letting go, what our own commits say beside the log is still kept.
    defer { endPinning() }
    try beginRead()
    defer { try? connection.rollback() }
    return try commits(after: pinned)
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

  private func commits(after sequence: Int64) throws -> [Commit] {
    try CofferError.translating {
      try core.commits.commits(after: sequence, connection) ?? [.unknown(through: try changeLog.lastSequence())]
    }
  }

  /// The commits after a snapshot; nil when they are not all known.
  func changes(since snapshot: UInt64) throws -> [Commit]? {
    try reading {
      // A snapshot of the future was another store's, or this one's before it was put back to an older state.
      guard let sequence = Int64(exactly: snapshot), sequence <= (try changeLog.lastSequence()) else { return nil }
      return try core.commits.commits(after: sequence, connection, isUnnamedRemovalOfAll: true)
    }
  }

  func rememberedCommits() throws -> [Commit] {
    try reading { try core.commits.existingCommits(after: -1, connection) }
  }
}
