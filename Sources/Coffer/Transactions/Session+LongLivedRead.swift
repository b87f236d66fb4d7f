import CofferStorage

extension Session {
  /// Pins the newest snapshot.
  ///
  /// - Returns: The commits since the one that was pinned before.
  func beginLongLivedRead() throws -> [Commit] {
    guard call.mode == .idle else { throw CofferError.nestedTransaction }
    let earlier = pinned?.number
    if pinned == nil {
      core.feed.retain()
      core.longLivedReadCount.add(1, ordering: .relaxed)
    }
    pinned = PinnedSnapshot()
    do {
      try CofferError.translating { try connection.rollback() }
      try beginRead()
      // The first read takes the snapshot.
      pinned?.number = try CofferError.translating { try changeLog.lastNumber() }
      let jumped = try earlier.map(commits) ?? []
      // If a collection is removed later, this is the only place that has its name.
      try CofferError.translating { try core.commits.learnNames(connection) }
      return jumped
    } catch {
      endPinning()
      throw error
    }
  }

  /// Releases the snapshot.
  ///
  /// - Returns: The commits since it was taken.
  func endLongLivedRead() throws -> [Commit] {
    guard let pinned else { return [] }
    guard call.mode == .idle else { throw CofferError.nestedTransaction }
    try? connection.rollback()
    // Until then, the details of our own commits that are not in the log are still kept.
    defer { endPinning() }
    try beginRead()
    defer { try? connection.rollback() }
    return try commits(after: pinned.number)
  }

  private func endPinning() {
    try? connection.rollback()
    pinned = nil
    core.feed.release()
    core.longLivedReadCount.subtract(1, ordering: .relaxed)
  }

  /// Ends a long-lived read that prevents checkpoints of the log.
  func expireLongLivedRead() {
    guard pinned?.hasExpired == false else { return }
    try? connection.rollback()
    pinned?.hasExpired = true
  }

  private func commits(after number: CommitNumber) throws -> [Commit] {
    try CofferError.translating {
      try core.commits.commits(after: number, connection) ?? [.unknown(through: try changeLog.lastPosition())]
    }
  }

  /// The commits after one; nil if some of them are unknown.
  func changes(since number: CommitNumber) throws -> [Commit]? {
    try reading {
      // A later one is another store's, or this one's before an older state was put back.
      guard number >= 0, number <= (try changeLog.lastNumber()) else { return nil }
      return try core.commits.commits(after: number, connection, isUnnamedRemovalOfAll: true)
    }
  }

  /// The commits after a place in the history; nil if some of them are unknown, or this is another history.
  func changes(since position: CommitPosition) throws -> [Commit]? {
    try reading { try position.isKnown(to: changeLog) ? changes(since: position.number) : nil }
  }

  func position() throws -> CommitPosition { try reading { try changeLog.lastPosition() } }

  func rememberedCommits() throws -> [Commit] {
    try reading { try core.commits.existingCommits(after: -1, connection) }
  }
}
