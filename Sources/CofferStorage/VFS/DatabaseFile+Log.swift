import CSQLite
import CofferCrypto

// MARK: - Log notice

extension DatabaseFile {
  /// - Returns: nil if it cannot be read.
  private var logNoticeBytes: [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: LogNotice.range.count)
    let code = bytes.withUnsafeMutableBytes {
      real.read($0.baseAddress!, $0.count, at: Int64(LogNotice.range.lowerBound))
    }
    return code == SQLITE_OK ? bytes : nil
  }

  /// Fails if the notice names the log of another name of this file, or other contents were written into the file.
  func readLogNotice() -> Int32 {
    // Under its temporary name a store has no other one.
    guard !context.isCreating, let bytes = logNoticeBytes else { return SQLITE_OK }
    let path = context.store.path
    // Every commit comes here, and most find what the last one found.
    let foundLog = hasJustFoundCompanions ? log?.identity?.inode : nil
    if hasLogNotice, let known = knownLogNotice, known.bytes == bytes,
      known.notice.isStillOfLog(besides: path, found: foundLog)
    {
      return SQLITE_OK
    }
    guard let notice = try? LogNotice(bytes) else { return checkContents() }
    switch notice.meaning(at: path) {
    case .nothing, nil: return checkContents()
    case .thisLog:
      hasLogNotice = notice == LogNotice(storeAt: path)
      knownLogNotice = (bytes, notice)
      return SQLITE_OK
    case .otherLog:
      context.fail(.usedUnderAnotherName(path: context.store.path))
      return SQLITE_IOERR
    }
  }

  private func checkContents() -> Int32 {
    guard !hasItsContents() else { return SQLITE_OK }
    context.fail(.replaced(path: context.store.path))
    return SQLITE_IOERR
  }

  /// Whether only connections have written into the file since this one has locked it.
  ///
  /// Not so after `cp`: then the pages in memory, and those in the log, are not of what is in the file. A connection notes its
  /// log before it writes anything else, and no one clears that while this one has its lock.
  func hasItsContents() -> Bool {
    guard fileLock != SQLITE_LOCK_NONE, !context.isCreating else { return true }
    if hasLogNotice {
      if let known = knownLogNotice, known.bytes == logNoticeBytes { return true }
    } else {
      // A log that was copied together with the store is not noted, and its pages may be written into the file.
      guard committedFrameCount == 0, let version = FileVersion(ofFileAt: context.store.path) else {
        unnotedVersion = nil
        return true
      }
      let earlier = unnotedVersion ?? version
      unnotedVersion = earlier
      guard version != earlier else { return true }
    }
    // A connection that notes its log just now has this lock: the file's time is a new one before the notice can be read.
    var isReserved: Int32 = 0
    guard real.methods.xCheckReservedLock(real.file, &isReserved) == SQLITE_OK, isReserved == 0 else { return true }
    guard context.store.lossOfName == nil, let bytes = logNoticeBytes else { return !context.store.hasOtherContents }
    do {
      // Another connection may have noted its log just now; and under another name the file has another log.
      if let notice = try LogNotice(bytes), notice.meaning(at: context.store.path) != .nothing { return true }
    } catch {
      // Without memory nothing is known.
      return true
    }
    // A later envelope is for those to judge who know the present one, which a new opening does not.
    guard !context.store.mayHaveLaterEnvelope else { return true }
    context.store.noteOtherContents()
    return false
  }

  /// Notes this log before its first frame is written.
  ///
  /// Programs with other names lock other shared memory. The lock that excludes them is on the file itself; SQLite uses
  /// it only with a rollback journal.
  private func makeLogNotice() -> Int32 {
    var code = readLogNotice()
    guard code == SQLITE_OK, !hasLogNotice, !context.isCreating else { return code }
    code = context.checked(real.methods.xLock(real.file, SQLITE_LOCK_RESERVED))
    guard code == SQLITE_OK else { return code }
    defer { _ = real.methods.xUnlock(real.file, SQLITE_LOCK_SHARED) }
    code = readLogNotice()
    guard code == SQLITE_OK, !hasLogNotice, let notice = LogNotice(storeAt: context.store.path) else { return code }
    do {
      code = writeLogNotice(try notice.encoded())
    } catch {
      context.fail(.unsupported(reason: "\(error)"))
      return COFFER_IOERR_WRITE
    }
    hasLogNotice = code == SQLITE_OK
    return code
  }

  private func writeLogNotice(_ bytes: [UInt8]) -> Int32 {
    bytes.withUnsafeBytes {
      context.checked(real.write($0.baseAddress!, $0.count, at: Int64(LogNotice.range.lowerBound)))
    }
  }

  /// Clears the notice once the log is removed, which needs the exclusive lock on the file.
  func clearLogNotice() {
    // Of a log that was moved here together with the store, the inode is what tells it, and the log is gone by now.
    guard !context.isCreating, let bytes = logNoticeBytes, let notice = try? LogNotice(bytes),
      knownLogNotice?.bytes == bytes || notice.meaning(at: context.store.path) == .thisLog
    else { return }
    // If that fails, the notice names a log that is missing, which is no error under this name.
    _ = writeLogNotice([UInt8](repeating: 0, count: LogNotice.range.count))
    context.clearFailure()
    hasLogNotice = false
  }
}

// MARK: - Shared memory that others changed

extension DatabaseFile {
  /// With the write lock.
  func prepareWriting() -> Int32 {
    let code = readLock == nil ? SQLITE_OK : makeLogNotice()
    guard code == SQLITE_OK else { return code }
    guard let log else { return SQLITE_OK }
    guard let walIndex = WalIndex(index) else {
      // Before it writes, SQLite looks at only one of the two copies of the header. To recover, it takes this lock without a
      // reader's.
      return index == nil || readLock == nil ? SQLITE_OK : recoverFirst()
    }
    log.lookupCode = SQLITE_OK
    guard walIndex.isOutdated(log: log, database: self) else {
      log.beginWriteTransaction(lastMark: log.lastMark)
      return SQLITE_OK
    }
    if let code = log.lookupFailure { return context.checked(code) }
    walIndex.invalidate()
    return recoverFirst()
  }

  /// SQLite tries again, finds the index invalid, and recovers it.
  private func recoverFirst() -> Int32 {
    context.outdatedIndexCount += 1
    return SQLITE_BUSY
  }

  /// With the checkpoint lock, but perhaps beside a writer.
  func prepareCheckpoint() -> Int32 {
    guard let walIndex = WalIndex(index), let log else { return SQLITE_OK }
    guard walIndex.isOfLastFrame(log: log) else {
      return log.lookupFailure.map(context.checked) ?? SQLITE_BUSY
    }
    walIndex.resetPartialBackfill()
    return SQLITE_OK
  }

  /// With the exclusive lock on the file, before the last connection checkpoints and removes the log.
  ///
  /// - Returns: false if the envelope cannot be loaded: without the newest epochs, a recovery would take the log for a
  ///   damaged one.
  func prepareClosing() -> Bool {
    defer { context.clearFailure() }
    guard (try? context.synchronizeEnvelope()) != nil else { return false }
    guard let walIndex = WalIndex(index), let log else { return true }
    if walIndex.isOutdated(log: log, database: self) { walIndex.invalidate() }
    walIndex.resetPartialBackfill()
    return true
  }

  /// Reads and opens a page of the file into `buffer`, without recording a failure.
  func hasPage(_ number: UInt32, equalTo expected: UnsafeRawPointer) -> Bool {
    let failure = context.takeFailure()
    defer { failure.map(context.fail) ?? context.clearFailure() }
    let buffer = UnsafeMutableRawPointer.allocate(byteCount: Layout.pageByteCount, alignment: 16)
    defer {
      Memory.wipe(UnsafeMutableRawBufferPointer(start: buffer, count: Layout.pageByteCount))
      buffer.deallocate()
    }
    return readPage(number, into: buffer) == SQLITE_OK && memcmp(buffer, expected, Layout.payloadByteCount) == 0
  }
}
