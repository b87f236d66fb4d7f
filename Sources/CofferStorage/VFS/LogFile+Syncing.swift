import CSQLite

/// The end of a log, and by the checksum everything before it: each frame's continues that of the frame before.
struct LogEnd: Equatable {
  let salts: UInt64
  let frameCount: UInt32
  let checksum: LogChecksum
}

extension LogFile {
  /// Syncs the log, including frames that an earlier sync may have failed to write.
  ///
  /// Nothing remains to be done if this connection has synced the log up to the same end. A checkpoint asks for that after
  /// every synced commit, as does the last connection to close.
  ///
  /// Systems discard data they could not write: bytes whose sync has failed count as written from then on, and no
  /// later sync writes them to the disk (https://wiki.postgresql.org/wiki/Fsync_Errors). SQLite rewrites the frames
  /// of the failed transaction, but not unsynced frames of earlier commits.
  func sync(_ flags: Int32) -> Int32 {
    var code = flushPendingHeader()
    guard code == SQLITE_OK else { return code }
    if needsNoSyncOfHeader { return SQLITE_OK }
    let store = context.store
    let isRepairing = store.hasUnsyncableLog.load(ordering: .acquiring)
    if isRepairing { code = writeCommittedFramesAgain() }
    guard code == SQLITE_OK else { return code }
    let (salts, count, end) = (generationSalts, writtenFrameCount, writtenEnd)
    if !isRepairing, let end, end == syncedEnd { return SQLITE_OK }
    if let syncedEnd, let commit = lastCommitOfTransaction, syncedEnd.salts == salts { writeAhead(of: commit) }
    syncedEnd = nil
    code = context.checked(real.methods.xSync(real.file, flags))
    if code == SQLITE_OK {
      store.noteSync(ofFrames: count, salts: salts)
      syncedEnd = end
    }
    // At once, while the system still has the bytes. A commit whose sync failed is not among the committed frames, but a
    // recovery finds it if it cannot be revoked.
    if code != SQLITE_OK, writeCommittedFramesAgain() != SQLITE_OK || lastCommitOfTransaction != nil {
      store.hasUnsyncableLog.store(true, ordering: .releasing)
    } else if isRepairing {
      store.hasUnsyncableLog.store(false, ordering: .releasing)
    }
    return code
  }

  /// Writes zeros behind a commit that has reached the end of the file, to be synced with it.
  ///
  /// A sync takes about half the time if the file did not become longer. So this is for connections that sync commit after commit:
  /// not for the first one, nor where only checkpoints sync. They take a sixteenth of what the disk has left, at most, so that a
  /// disk that is nearly full keeps its room for what is not zeros. A frame of zeros is none: it has page 0.
  private func writeAhead(of commit: UInt32) {
    let end = Self.offset(ofFrame: commit + 1)
    var size: Int64 = 0
    guard !isWithoutRoom, real.byteCount(&size) == SQLITE_OK, size <= end else { return }
    let wanted = min(max(end, Self.leastAhead), Self.mostAhead)
    if let free = FilePath.freeByteCount(context.store.path, forRoot: false), free / 16 < UInt64(wanted) { return }
    // The system ends a process that writes beyond its limit for files.
    let count = min(wanted, FileLimit.byteCount - end) / Int64(Self.zeros.count)
    for offset in stride(from: end, to: end + max(0, count) * Int64(Self.zeros.count), by: Self.zeros.count) {
      let code = Self.zeros.withUnsafeBytes { real.write($0.baseAddress!, $0.count, at: offset) }
      guard code != SQLITE_OK else { continue }
      // What the disk still has is for commits.
      isWithoutRoom = true
      _ = real.methods.xTruncate(real.file, end)
      return
    }
  }

  /// Gives the zeros back: the disk has no room for something else.
  ///
  /// - Returns: Whether there were any.
  func giveBackZeros() -> Bool {
    isWithoutRoom = true
    if database.holdsWriteLock || database.fileLock == SQLITE_LOCK_EXCLUSIVE { return cutZeros() }
    return database.withoutWriters(cutZeros) ?? false
  }

  /// Zeros where the next frame would begin were written ahead, and nothing but zeros follows them.
  private func cutZeros() -> Bool {
    guard let count = database.committedFrameCount, count > 0 else { return false }
    let end = Self.offset(ofFrame: count + 1)
    var next: UInt64 = 0
    let code = withUnsafeMutableBytes(of: &next) { real.read($0.baseAddress!, $0.count, at: end) }
    return code == SQLITE_OK && next == 0 && real.methods.xTruncate(real.file, end) == SQLITE_OK
  }

  private static let zeros = [UInt8](repeating: 0, count: 16 << 10)
  private static let leastAhead: Int64 = 64 << 10
  private static let mostAhead: Int64 = 1 << 20

  /// Truncates the log.
  ///
  /// An empty log must stay empty in a power cut, see `needsNoSyncOfHeader`: so its header is replaced first, on the disk, by
  /// one under which no frame counts, or is missed.
  func truncate(to size: Int64) -> Int32 {
    var present: Int64 = 0
    var code = context.checked(real.byteCount(&present))
    if code == SQLITE_OK, size == 0, present > 0 {
      let header = Layout.emptiedLogHeader
      code = header.withUnsafeBytes { context.checked(real.write($0.baseAddress!, $0.count, at: 0)) }
      if code == SQLITE_OK { code = context.checked(real.methods.xSync(real.file, SQLITE_SYNC_NORMAL)) }
    }
    return code == SQLITE_OK ? context.checked(real.methods.xTruncate(real.file, size)) : code
  }

  /// Empties a log that is not open, in the same steps.
  static func empty(_ path: String) {
    let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    let header = Layout.emptiedLogHeader
    if pwrite(descriptor, header, header.count, 0) == header.count, fsync(descriptor) == 0 { ftruncate(descriptor, 0) }
    close(descriptor)
  }

  /// Rewrites the committed part of the log in place, so that the next sync by any connection includes it.
  ///
  /// Only with a lock held that keeps others from restarting the log. Uncommitted frames are left alone: another
  /// writer may be writing them.
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
