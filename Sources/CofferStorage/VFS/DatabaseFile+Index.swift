import CSQLite
import CofferCrypto

/// The wal-index, in shared memory: mapping it, and its locks.
extension DatabaseFile {
  /// Blocks checkpoints by other connections while `body` runs; nil while one is running.
  ///
  /// The caller holds the write lock, and makes no checkpoint itself.
  func withoutCheckpoints<Result>(_ body: () throws -> Result) rethrows -> Result? {
    try holding(IndexLock.checkpoint, body)
  }

  /// Blocks other writers while `body` runs; nil while there is one.
  ///
  /// Nothing is prepared for writing: an index that someone has changed stays as it is.
  func withoutWriters<Result>(_ body: () throws -> Result) rethrows -> Result? {
    index == nil ? nil : try holding(IndexLock.write, body)
  }

  private func holding<Result>(_ lock: Int32, _ body: () throws -> Result) rethrows -> Result? {
    guard let xShmLock = real.methods.xShmLock,
      xShmLock(real.file, lock, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) == SQLITE_OK
    else { return nil }
    defer { _ = xShmLock(real.file, lock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE) }
    return try body()
  }

  func mapIndex(
    _ region: Int32, _ count: Int32, _ extend: Int32,
    _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  ) -> Int32 {
    lacksSharedMemory = index == nil && readOnlyAccess?.makesFiles == false && !hasSharedMemory
    if lacksSharedMemory {
      // SQLite then indexes the log on the heap, and asks again at each transaction:
      // https://www.sqlite.org/walformat.html, "Read-only WAL-mode databases"
      hasLackedSharedMemory = true
      result.pointee = nil
      return COFFER_READONLY_CANTINIT
    }
    var code = mapBelow(region, count, extend, result)
    if code == SQLITE_OK, hasLackedSharedMemory { code = SQLITE_READONLY }
    // Read-only shared memory is mapped, too; SQLite treats this code as success.
    if code == SQLITE_OK || code == SQLITE_READONLY {
      if region == 0 { index = UnsafeRawPointer(result.pointee) }
      while regions.count <= Int(region) { regions.append(nil) }
      regions[Int(region)] = UnsafeRawPointer(result.pointee)
    }
    return code
  }

  /// The page that a frame holds according to the wal-index; nil if it is not in shared memory.
  @inline(__always)
  func indexedPage(ofFrame frame: UInt32) -> UInt32? {
    let (region, offset) = WalIndex.place(ofFrame: frame)
    guard region < regions.count, let start = regions[region] else { return nil }
    return start.load(fromByteOffset: offset, as: UInt32.self)
  }

  private func mapBelow(
    _ region: Int32, _ count: Int32, _ extend: Int32,
    _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  ) -> Int32 {
    func map() -> Int32 { context.checked(real.methods.xShmMap(real.file, region, count, extend, result)) }
    // It stays open after the first call.
    if hasCheckedSharedMemory { return map() }
    let file = CompanionFile(path: context.store.path + "-shm", store: context.store)
    let unmap = { _ = self.real.methods.xShmUnmap(self.real.file, 0) }
    var opened: FileIdentity?
    let code = context.openingByName {
      file.open(context, as: &opened, map, close: unmap)
    } close: {
      unmap()
    }
    hasCheckedSharedMemory = code == SQLITE_OK || code == SQLITE_READONLY
    if hasCheckedSharedMemory, let opened { indexIdentity = context.store.useIndex(opened) }
    return code
  }

  /// A file that cannot be examined is left for the VFS below to refuse.
  private var hasSharedMemory: Bool {
    (try? ReadOnlyAccess.hasSharedMemory(besides: context.store.path)) ?? true
  }

  /// Takes or releases a lock without shared memory; nil if there is shared memory, or was when the lock was taken.
  private func lockNothing(_ first: Int32, _ flags: Int32) -> Int32? {
    let lock: Int32 = 1 << first
    if flags & SQLITE_SHM_UNLOCK != 0 {
      guard emptyLocks & lock != 0 else { return nil }
      emptyLocks &= ~lock
      unlockedVersion = nil
      return SQLITE_OK
    }
    guard lacksSharedMemory else { return nil }
    guard flags & SQLITE_SHM_SHARED != 0, let version = FileVersion(ofFileAt: context.store.path) else {
      return SQLITE_BUSY
    }
    emptyLocks |= lock
    unlockedVersion = version
    return SQLITE_OK
  }

  func lockIndex(_ first: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    let (isUnlocking, isExclusive) = (flags & SQLITE_SHM_UNLOCK != 0, flags & SQLITE_SHM_EXCLUSIVE != 0)
    if !isUnlocking, !isExclusive, !hasLogNotice {
      let code = readLogNotice()
      guard code == SQLITE_OK else { return code }
    }
    if let code = lockNothing(first, flags) { return code }
    guard isExclusive, first <= IndexLock.recovery else { return lockReader(first, count, flags) }
    let locks = first..<first + count
    guard isUnlocking else { return takeLocks(locks) }
    releasing(locks)
    return setLocks(locks, flags)
  }

  private func setLocks(_ locks: Range<Int32>, _ flags: Int32) -> Int32 {
    real.methods.xShmLock!(real.file, locks.lowerBound, Int32(locks.count), flags)
  }

  /// A reader's lock, or one of those exclusively, for a read mark or a checkpoint.
  private func lockReader(_ first: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    let locks = first..<first + count
    let code = context.checked(setLocks(locks, flags))
    guard code == SQLITE_OK else { return code }
    if flags & SQLITE_SHM_EXCLUSIVE == 0 {
      if first >= IndexLock.firstReader { readLock = flags & SQLITE_SHM_LOCK != 0 ? first : nil }
    } else if checkpoint.mustGiveBack(first, flags, salts: indexSalts) {
      _ = setLocks(locks, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      return SQLITE_BUSY
    }
    return code
  }

  /// Before the locks of a writer, a recovery or a checkpoint are released.
  private func releasing(_ locks: Range<Int32>) {
    // A header without its page belongs to a failed transaction; SQLite ignores errors of unlocking.
    log?.dropPendingHeader()
    if locks.lowerBound == IndexLock.write {
      if let committedFrameCount { log?.revokeCommit(after: committedFrameCount) }
      indexVersionAfterWrite = indexVersion
      holdsWriteLock = false
      log?.endWriteTransaction()
    }
    if locks.contains(IndexLock.recovery) {
      renewEmptyIndex()
      holdsRecoveryLock = false
      checkpoint.begin(salts: indexSalts)
    }
    if locks.contains(IndexLock.checkpoint) { holdsCheckpointLock = false }
  }

  /// Takes the locks of a writer, a recovery or a checkpoint, and gives them back unless it may begin.
  private func takeLocks(_ locks: Range<Int32>) -> Int32 {
    var code = context.checked(setLocks(locks, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE))
    guard code == SQLITE_OK else { return code }
    code = prepare(locks)
    guard code == SQLITE_OK else {
      _ = setLocks(locks, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      return code
    }
    if locks.lowerBound == IndexLock.write { holdsWriteLock = true }
    if locks.contains(IndexLock.recovery) { holdsRecoveryLock = true }
    if locks.contains(IndexLock.checkpoint) { holdsCheckpointLock = true }
    checkpoint.begin(salts: indexSalts)
    return SQLITE_OK
  }

  private func prepare(_ locks: Range<Int32>) -> Int32 {
    let isWriting = locks.lowerBound == IndexLock.write
    // A file that was replaced, removed or moved is no longer visible, so writes to it, or to its log, would be lost.
    if isWriting, let loss = context.store.lossOfName ?? lossOfCompanion {
      lookedAtVersion = nil
      context.fail(loss)
      return SQLITE_IOERR
    }
    do {
      // Every time: the process that changed the envelope may have been interrupted before its commit, which the
      // wal-index would not show.
      try context.synchronizeEnvelope()
    } catch {
      context.fail(error)
      return SQLITE_IOERR
    }
    return isWriting ? prepareWriting() : locks.contains(IndexLock.recovery) ? SQLITE_OK : prepareCheckpoint()
  }

  /// Whether the log or the index that this connection has open no longer has its name: others use another file, or will.
  ///
  /// SQLite removes neither while there is a connection: https://www.sqlite.org/howtocorrupt.html, 2.4.
  var hasLostCompanion: Bool {
    func isLost(_ file: FileIdentity?, _ suffix: String) -> Bool {
      guard let file else { return false }
      return file.found(at: context.store.path + suffix) != .same
    }
    return isLost(log?.identity, "-wal") || isLost(indexIdentity, "-shm")
  }

  private var lossOfCompanion: StorageError? { findCompanions() ? nil : .replaced(path: context.store.path) }

  /// Whether the log and the index have their names; they are not looked up again if they were found just now.
  private func findCompanions() -> Bool {
    guard !hasJustFoundCompanions else { return true }
    let time = ContinuousClock.now
    let isFound = !hasLostCompanion
    foundCompanionsAt = isFound ? time : nil
    return isFound
  }

  /// Whether this call has found the log and the index under their names less than a millisecond ago.
  ///
  /// Files are exchanged without a lock, so looking again at once would make nothing more certain. After a wait it would.
  var hasJustFoundCompanions: Bool { foundCompanionsAt.map { .now - $0 < .milliseconds(1) } ?? false }

  /// The same of the contents: a read should not look twice where many follow each other.
  private var hasJustFoundContents: Bool { foundContentsAt.map { .now - $0 < .milliseconds(1) } ?? false }

  /// Whether the index is that of the store that has this one's name now.
  var sharesIndexWithSuccessor: Bool {
    context.store.hasLostName && indexIdentity?.found(at: context.store.path + "-shm") == .same
  }

  /// Whether another file now has the name of the store, its log or its index, or other contents were written into the store.
  ///
  /// - Parameter isCertain: Whether to check in any case, not only if there was a commit since the last check.
  func isReplaced(isCertain: Bool) -> Bool {
    // Another call, which may be about an exchange.
    foundCompanionsAt = nil
    let version = indexVersion
    guard isCertain || version != lookedAtVersion || context.store.hasOtherContents else {
      // A transaction that finds it out when it takes its lock ends with an error.
      guard unnotedVersion != nil, !hasJustFoundContents else { return false }
      foundContentsAt = .now
      return !hasItsContents()
    }
    lookedAtVersion = version
    return switch context.store.lossOfName {
    // It may be put back, with its log and index.
    case .notFound: false
    case .some: true
    // A transaction looks at the contents, too, when it takes its lock.
    case nil: isCertain && !hasItsContents() || !findCompanions()
    }
  }

  private func renewEmptyIndex() {
    guard let recovered = RecoveredIndex(index), let random = try? context.codec.randomBytes(count: 8) else { return }
    recovered.renew(salts: random.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
  }

  /// The 8-byte checksum of the wal-index header, which changes with every commit and recovery.
  private var indexVersion: UInt64? {
    index?.load(fromByteOffset: CommitCounter.offset, as: UInt64.self)
  }

  /// nil where there is no shared memory, or it is not mapped yet.
  var commitCounter: CommitCounter? { index.flatMap(CommitCounter.init(mappedIndex:)) }

  /// The number of committed frames in the log, according to the wal-index.
  var committedFrameCount: UInt32? {
    index?.load(fromByteOffset: 16, as: UInt32.self)
  }

  /// The end of the committed log, according to the wal-index; nil for one without commits.
  var committedEnd: LogEnd? {
    guard let index, let salts = indexSalts, let frameCount = committedFrameCount, frameCount > 0 else { return nil }
    return LogEnd(salts: salts, frameCount: frameCount, checksum: LogChecksum(nativeAt: index + 24))
  }

  /// The salts of the log's current generation, according to the wal-index.
  var indexSalts: UInt64? {
    index?.load(fromByteOffset: 32, as: UInt64.self)
  }
}
