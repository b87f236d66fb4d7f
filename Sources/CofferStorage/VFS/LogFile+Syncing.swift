import CSQLite

extension LogFile {
  /// Syncs the log, and what an earlier sync may have left out.
  ///
  /// Systems give up what they could not write: bytes whose sync has failed count as written from then on, and no later
  /// sync brings them to the disk (https://wiki.postgresql.org/wiki/Fsync_Errors). SQLite writes the frames of the
  /// transaction that failed anew, but not those of earlier commits that nobody had synced.
  func sync(_ flags: Int32) -> Int32 {
    var code = flushPendingHeader()
    guard code == SQLITE_OK else { return code }
    let store = context.store
    let isRepairing = store.hasUnsyncableLog.load(ordering: .acquiring)
    if isRepairing { code = writeCommittedFramesAgain() }
    guard code == SQLITE_OK else { return code }
    code = context.checked(real.methods.xSync(real.file, flags))
    // At once, as long as the system has the bytes.
    if code != SQLITE_OK, writeCommittedFramesAgain() != SQLITE_OK {
      store.hasUnsyncableLog.store(true, ordering: .releasing)
    } else if isRepairing {
      store.hasUnsyncableLog.store(false, ordering: .releasing)
    }
    return code
  }

  /// Writes what all connections see of the log over itself, so that the next sync, whoever makes it, takes it along.
  ///
  /// Only with a lock held that keeps others from starting the log over. Frames that are not committed yet are left
  /// alone: another writer may be at them.
  private func writeCommittedFramesAgain() -> Int32 {
    guard database.keepsLog, let frameCount = database.committedFrameCount else { return COFFER_IOERR_FSYNC }
    guard frameCount > 0 else { return SQLITE_OK }
    let end = Self.offset(ofFrame: frameCount) + Int64(Layout.frameByteCount)
    for offset in stride(from: 0, to: end, by: Layout.frameByteCount) {
      let count = Int(min(Int64(Layout.frameByteCount), end - offset))
      var code = context.checked(real.read(frame, count, at: offset))
      if code == SQLITE_OK { code = context.checked(real.write(frame, count, at: offset)) }
      guard code == SQLITE_OK else { return code }
    }
    return SQLITE_OK
  }
}
