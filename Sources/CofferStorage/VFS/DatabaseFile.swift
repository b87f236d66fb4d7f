import CSQLite
import CofferCrypto

/// The store file as SQLite sees it: decrypted pages from offset 0.
///
/// Below, the envelope comes first and pages are sealed.
final class DatabaseFile {
  let real: RealFile
  let context: ConnectionContext
  /// nil for a connection that may write.
  private let readOnlyAccess: ReadOnlyAccess?
  /// The file version that every page must come from while no lock excludes writers.
  private var unlockedVersion: FileVersion?
  /// The log of this connection while it is open; it unregisters itself.
  unowned(unsafe) var log: LogFile?
  /// The regions of the mapped wal-index; empty where there is no shared memory, or it is not mapped yet.
  ///
  /// https://www.sqlite.org/walformat.html#the_wal_index_file_format
  @exclusivity(unchecked) private var regions: [UnsafeRawPointer?] = []
  /// The first one.
  private(set) var index: UnsafeRawPointer?
  /// Whether the store's notice names this log.
  ///
  /// It cannot change before this connection releases its lock on the file, because it is cleared under an exclusive one.
  var hasLogNotice = false
  /// Whether SQLite keeps the wal-index on the heap, because there is no shared memory.
  private var lacksSharedMemory = false
  /// Whether it ever did; SQLite then treats shared memory as read-only until it has unmapped it.
  private var hasLackedSharedMemory = false
  /// Whether the open shared memory was verified to belong to the owner.
  private var hasCheckedSharedMemory = false
  /// The locks, as bits, granted without shared memory to lock.
  private var emptyLocks: Int32 = 0
  /// The lock of this connection as a reader.
  ///
  /// A recovery or a checkpoint has none while it takes the write lock.
  private(set) var readLock: Int32?
  private(set) var holdsWriteLock = false
  private(set) var holdsRecoveryLock = false
  private var holdsCheckpointLock = false
  private var checkpoint = CheckpointGuard()
  /// The lock on the file itself; to close, the last connection takes the exclusive one, and none in the wal-index.
  private var fileLock = SQLITE_LOCK_NONE
  /// Whether this connection keeps others from restarting the log.
  var keepsLog: Bool { holdsWriteLock || holdsCheckpointLock || fileLock == SQLITE_LOCK_EXCLUSIVE }

  /// Whether a recovery will overwrite the part of the log that it leaves out.
  ///
  /// True if it holds the recovery lock, or if the last connection closes, which needs no further lock.
  var mayWriteOverLog: Bool { holdsRecoveryLock || fileLock == SQLITE_LOCK_EXCLUSIVE }
  /// The wal-index header's checksum when this connection last released the write lock.
  private(set) var indexVersionAfterWrite: UInt64?
  private let page = UnsafeMutableRawPointer.allocate(byteCount: Layout.pageByteCount, alignment: 16)

  private static let shift = Int64(Layout.envelopeByteCount)

  init(real: RealFile, context: ConnectionContext, readOnlyAccess: ReadOnlyAccess?) {
    self.real = real
    self.context = context
    self.readOnlyAccess = readOnlyAccess
    unlockedVersion = readOnlyAccess?.image
  }

  deinit {
    Memory.wipe(UnsafeMutableRawBufferPointer(start: page, count: Layout.pageByteCount))
    page.deallocate()
  }

  // MARK: Pages

  /// The page number at `offset`; nil if there is none.
  private static func page(at offset: Int64) -> UInt32? {
    offset < 0 ? nil : UInt32(exactly: offset / Int64(Layout.pageByteCount) + 1)
  }

  private func read(_ buffer: UnsafeMutableRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
    let position = Int(offset % Int64(Layout.pageByteCount))
    guard count > 0, position + count <= Layout.pageByteCount, let number = Self.page(at: offset) else {
      return refuse("reads \(count) at \(offset)")
    }
    if count == Layout.pageByteCount { return readPage(number, into: buffer) }

    // SQLite reads the first 100 bytes before anything else, and bytes 24..<40 to check whether its cache is still
    // valid.
    let result = readPage(number, into: page)
    switch result {
    case SQLITE_OK: memcpy(buffer, page + position, count)
    case COFFER_IOERR_SHORT_READ: memset(buffer, 0, count)
    case COFFER_IOERR_DATA where number == 1 && hasLog:
      // A power cut during a checkpoint damaged page 1; the log still has it, and SQLite looks there next.
      _ = context.takeFailure()
      DatabaseHeader.write(to: page)
      memcpy(buffer, page + position, count)
      return SQLITE_OK
    default: break
    }
    return result
  }

  func readPage(_ number: UInt32, into buffer: UnsafeMutableRawPointer) -> Int32 {
    let code = readPageOnce(number, into: buffer)
    return code == COFFER_IOERR_DATA ? readPageAgain(number, into: buffer) : code
  }

  /// Reads a page that does not authenticate again, until no checkpoint can be writing it.
  ///
  /// SQLite writes no page that a reader has from the file, but for one case: a checkpoint that begins at the first frame
  /// again, after a recovery or `resetPartialBackfill`, writes pages a second time. SQLite need not mind, as the bytes would
  /// be the same; sealed again, they are others.
  private func readPageAgain(_ number: UInt32, into buffer: UnsafeMutableRawPointer) -> Int32 {
    // Without an index there is no lock; and what this connection checkpoints, no other does.
    guard index != nil, !holdsCheckpointLock, fileLock != SQLITE_LOCK_EXCLUSIVE else { return COFFER_IOERR_DATA }
    // A checkpoint may take long, but this page only a moment of it.
    for _ in 0..<1000 {
      context.clearFailure()
      let last = withoutCheckpoints { readPageOnce(number, into: buffer) }
      let code = last ?? readPageOnce(number, into: buffer)
      guard code == COFFER_IOERR_DATA, last == nil else { return code }
      usleep(1000)
    }
    return COFFER_IOERR_DATA
  }

  private func readPageOnce(_ number: UInt32, into buffer: UnsafeMutableRawPointer) -> Int32 {
    let offset = Int64(number - 1) * Int64(Layout.pageByteCount) + Self.shift
    let result = context.checked(real.read(buffer, Layout.pageByteCount, at: offset))
    if result == COFFER_IOERR_SHORT_READ { return readPastEnd(number) }
    guard result == SQLITE_OK else { return result }
    // Checked after the read: a writer may have been in the middle of a checkpoint before it.
    if let code = failIfChanged() { return code }
    guard context.canOpen(buffer) else {
      memset(buffer, 0, Layout.pageByteCount)
      return COFFER_IOERR_DATA
    }
    do throws(CryptoError) {
      try context.codec.decrypt(buffer, at: .database(page: number), into: buffer)
      return SQLITE_OK
    } catch {
      memset(buffer, 0, Layout.pageByteCount)
      context.fail(error, part: "page \(number)")
      return COFFER_IOERR_DATA
    }
  }

  /// Whether the file was read as an image, and has changed since, or a writer has come, whose log would be ignored.
  var isOfOldImage: Bool {
    guard let image = readOnlyAccess?.image else { return false }
    return (try? ReadOnlyAccess(path: context.store.path, hasRoom: context.hasRoom))?.image != image
  }

  /// Fails if a writer changed a file that cannot be locked, which would mix two states of the store.
  func failIfChanged() -> Int32? {
    guard let unlockedVersion, FileVersion(ofFileAt: context.store.path) != unlockedVersion else { return nil }
    // Busy, because the next transaction starts with the new state; an image has to be opened again.
    context.fail(readOnlyAccess?.image == nil ? .busy : .imageChanged(path: context.store.path))
    return COFFER_IOERR_READ
  }

  /// Reads beyond the end succeed only in a new store, which has no pages yet.
  ///
  /// Otherwise SQLite would read a truncated page as zeros.
  private func readPastEnd(_ number: UInt32) -> Int32 {
    if context.isCreating { return COFFER_IOERR_SHORT_READ }
    context.fail(.damaged(part: "page \(number)", reason: "the file is truncated"))
    return COFFER_IOERR_DATA
  }

  /// Whether there is a log with contents: `SQLITE_ACCESS_EXISTS` is false for an empty file.
  private var hasLog: Bool {
    var result: Int32 = 0
    let below = context.store.below.pointer
    return below.pointee.xAccess(below, context.store.path + "-wal", SQLITE_ACCESS_EXISTS, &result) == SQLITE_OK
      && result != 0
  }

  private func write(_ buffer: UnsafeRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
    guard count == Layout.pageByteCount, offset % Int64(Layout.pageByteCount) == 0, let number = Self.page(at: offset)
    else {
      return refuse("writes \(count) at \(offset)")
    }
    guard PageCodec.hasReserve(buffer, number: number) else {
      return refuse("writes page \(number) without the reserved bytes")
    }
    do throws(CryptoError) {
      try context.codec.encrypt(buffer, at: .database(page: number), into: page)
    } catch {
      context.fail(error, part: "page \(number)")
      return COFFER_IOERR_WRITE
    }
    return context.checked(real.write(page, Layout.pageByteCount, at: offset + Self.shift))
  }

  /// SQLite never does this with Coffer's settings; other code is using the connection.
  func refuse(_ what: String) -> Int32 {
    context.fail(.unsupported(reason: "SQLite \(what), which the encrypted file does not allow"))
    return SQLITE_IOERR
  }

  // MARK: Size

  private func byteCount(_ result: UnsafeMutablePointer<Int64>) -> Int32 {
    var size: Int64 = 0
    let code = context.checked(real.byteCount(&size))
    guard code == SQLITE_OK else { return code }
    result.pointee = size - Self.shift
    // SQLite would take an emptied store for a new one, and delete its log.
    guard result.pointee > 0 || context.isCreating && result.pointee == 0 else {
      context.fail(.damaged(part: "page 1", reason: "the file is truncated"))
      return COFFER_IOERR_FSTAT
    }
    return SQLITE_OK
  }

  private func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    switch operation {
    case SQLITE_FCNTL_SIZE_HINT:
      guard let argument else { return SQLITE_NOTFOUND }
      var size = argument.load(as: Int64.self) + Self.shift
      return real.methods.xFileControl(real.file, operation, &size)
    case SQLITE_FCNTL_MMAP_SIZE: return SQLITE_NOTFOUND
    default: return real.methods.xFileControl(real.file, operation, argument)
    }
  }

  /// Power-safe overwrite, so that a log frame is written in one piece and never padded.
  ///
  /// No characteristics that would let SQLite bypass this VFS for writes (atomic batches) or read less than a page.
  ///
  /// An image is read without locks and without checking for a log: https://www.sqlite.org/uri.html, "immutable".
  private var characteristics: Int32 {
    readOnlyAccess?.image == nil ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : SQLITE_IOCAP_IMMUTABLE
  }

  private func lock(_ level: Int32) -> Int32 {
    let code = context.checked(real.methods.xLock(real.file, level))
    guard code == SQLITE_OK else { return code }
    // It may have waited for a restore.
    if fileLock == SQLITE_LOCK_NONE, context.store.isReplaced {
      context.fail(.replaced(path: context.store.path))
      _ = real.methods.xUnlock(real.file, SQLITE_LOCK_NONE)
      return SQLITE_IOERR
    }
    fileLock = max(level, fileLock)
    if level == SQLITE_LOCK_EXCLUSIVE { prepareClosing() }
    return code
  }

  // MARK: Shared memory

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

  private func mapIndex(
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
    let code = context.openingByName {
      file.open(context, map, close: unmap)
    } close: {
      unmap()
    }
    hasCheckedSharedMemory = code == SQLITE_OK || code == SQLITE_READONLY
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

  private func lockIndex(_ first: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    if flags & SQLITE_SHM_LOCK != 0, flags & SQLITE_SHM_SHARED != 0, !hasLogNotice {
      let code = readLogNotice()
      guard code == SQLITE_OK else { return code }
    }
    if let code = lockNothing(first, flags) { return code }
    let xShmLock = real.methods.xShmLock
    if flags & SQLITE_SHM_EXCLUSIVE != 0, first > IndexLock.recovery {
      let code = context.checked(xShmLock!(real.file, first, count, flags))
      guard code == SQLITE_OK, checkpoint.mustGiveBack(first, flags, salts: indexSalts) else { return code }
      _ = xShmLock!(real.file, first, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      return SQLITE_BUSY
    }
    // The readers' read marks do not matter here.
    guard flags & SQLITE_SHM_EXCLUSIVE != 0 else {
      let code = context.checked(xShmLock!(real.file, first, count, flags))
      if code == SQLITE_OK, first >= IndexLock.firstReader {
        readLock = flags & SQLITE_SHM_LOCK != 0 ? first : nil
      }
      return code
    }
    let coversRecovery = (first..<first + count).contains(IndexLock.recovery)
    let coversCheckpoint = (first..<first + count).contains(IndexLock.checkpoint)
    if flags & SQLITE_SHM_UNLOCK != 0 {
      // A header without its page belongs to a failed transaction; SQLite ignores errors of unlocking.
      log?.dropPendingHeader()
      if first == IndexLock.write {
        if let committedFrameCount { log?.revokeCommit(after: committedFrameCount) }
        indexVersionAfterWrite = indexVersion
        holdsWriteLock = false
        log?.endWriteTransaction()
      }
      if coversRecovery {
        renewEmptyIndex()
        holdsRecoveryLock = false
        checkpoint.begin(salts: indexSalts)
      }
      if coversCheckpoint { holdsCheckpointLock = false }
      return xShmLock!(real.file, first, count, flags)
    }

    let code = context.checked(xShmLock!(real.file, first, count, flags))
    guard code == SQLITE_OK else { return code }
    // A file that was replaced, removed or moved is no longer visible, so writes to it would be lost.
    if first == IndexLock.write, let loss = context.store.lossOfName {
      lookedAtVersion = nil
      context.fail(loss)
      _ = xShmLock!(real.file, first, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      return SQLITE_IOERR
    }
    do {
      // Every time: the process that changed the envelope may have been interrupted before its commit, which the
      // wal-index would not show.
      try context.synchronizeEnvelope()
    } catch {
      context.fail(error as? StorageError ?? .unsupported(reason: "\(error)"))
      _ = xShmLock!(real.file, first, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      return SQLITE_IOERR
    }
    let checked = first == IndexLock.write ? prepareWriting() : coversRecovery ? SQLITE_OK : prepareCheckpoint()
    guard checked == SQLITE_OK else {
      _ = xShmLock!(real.file, first, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      return checked
    }
    if first == IndexLock.write { holdsWriteLock = true }
    if coversRecovery { holdsRecoveryLock = true }
    if coversCheckpoint { holdsCheckpointLock = true }
    checkpoint.begin(salts: indexSalts)
    return code
  }

  /// The wal-index header's checksum at the last check whether the store was replaced.
  private var lookedAtVersion: UInt64?

  /// Whether another file now has the store's name.
  ///
  /// - Parameter isCertain: Whether to check in any case, not only if there was a commit since the last check.
  func isReplaced(isCertain: Bool) -> Bool {
    let version = indexVersion
    guard isCertain || version != lookedAtVersion else { return false }
    lookedAtVersion = version
    return context.store.isReplaced
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

// MARK: - Methods

extension DatabaseFile {
  @inline(__always)
  private static func with<Result>(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ body: (DatabaseFile) -> Result
  ) -> Result {
    OpenFile.withState(file!, body)
  }

  /// Written once, before any file is opened, and only read afterwards.
  nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: sqlite3_io_methods())
    // Version 2 has shared memory and no `xFetch`: pages are never mapped.
    methods.pointee.iVersion = 2
    methods.pointee.xClose = { file in
      let code = with(file) { $0.real.close() }
      OpenFile.releaseState(file!, of: DatabaseFile.self)
      return code
    }
    methods.pointee.xRead = { file, buffer, count, offset in with(file) { $0.read(buffer!, Int(count), offset) } }
    methods.pointee.xWrite = { file, buffer, count, offset in with(file) { $0.write(buffer!, Int(count), offset) } }
    methods.pointee.xTruncate = { file, size in
      with(file) { $0.context.checked($0.real.methods.xTruncate($0.real.file, size + shift)) }
    }
    methods.pointee.xSync = { file, flags in
      with(file) { $0.context.checked($0.real.methods.xSync($0.real.file, flags)) }
    }
    methods.pointee.xFileSize = { file, result in with(file) { $0.byteCount(result!) } }
    methods.pointee.xLock = { file, level in
      with(file) { $0.lock(level) }
    }
    methods.pointee.xUnlock = { file, level in
      with(file) {
        $0.fileLock = min(level, $0.fileLock)
        if level == SQLITE_LOCK_NONE { $0.hasLogNotice = false }
        return $0.real.methods.xUnlock($0.real.file, level)
      }
    }
    methods.pointee.xCheckReservedLock = { file, result in
      with(file) { $0.real.methods.xCheckReservedLock($0.real.file, result) }
    }
    methods.pointee.xFileControl = { file, operation, argument in with(file) { $0.control(operation, argument) } }
    methods.pointee.xSectorSize = { file in with(file) { $0.real.methods.xSectorSize($0.real.file) } }
    methods.pointee.xDeviceCharacteristics = { file in with(file) { $0.characteristics } }
    methods.pointee.xShmMap = { file, region, count, extend, result in
      let result = UnsafeMutableRawPointer(result!).assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
      return with(file) { $0.mapIndex(region, count, extend, result) }
    }
    methods.pointee.xShmLock = { file, first, count, flags in with(file) { $0.lockIndex(first, count, flags) } }
    methods.pointee.xShmBarrier = { file in with(file) { $0.real.methods.xShmBarrier($0.real.file) } }
    methods.pointee.xShmUnmap = { file, delete in
      with(file) {
        $0.index = nil
        $0.regions = []
        $0.hasCheckedSharedMemory = false
        $0.hasLackedSharedMemory = false
        let file = $0
        // By now the name may belong to another store.
        let deletes = delete != 0 && !file.context.store.isReplaced
        return file.context.acting { file.real.methods.xShmUnmap(file.real.file, deletes ? 1 : 0) }
      }
    }
    return UnsafePointer(methods)
  }()
}

/// The bytes among the first 100 of page 1 that are the same in every store.
///
/// https://www.sqlite.org/fileformat2.html#the_database_header
enum DatabaseHeader {
  /// What a store's page 1 always says, by the offset of the byte: the size of a page, a write-ahead log, the reserved bytes,
  /// the newest schema format, no automatic vacuum, UTF-8 (https://www.sqlite.org/fileformat2.html#the_database_header).
  private static let fixed: [Int: UInt8] = {
    var fixed: [Int: UInt8] = [
      16: UInt8(Layout.pageByteCount >> 8), 17: 0, 18: 2, 19: 2, 20: UInt8(Layout.reserveByteCount),
    ]
    for (offset, byte) in [21: 64, 22: 32, 23: 32] as [Int: UInt8] { fixed[offset] = byte }
    for (start, last) in [(44, 4), (52, 0), (56, 1), (64, 0)] as [(Int, UInt8)] {
      for offset in start..<start + 3 { fixed[offset] = 0 }
      fixed[start + 3] = last
    }
    return fixed
  }()

  /// What is wrong with a page 1, as a sentence; nil if nothing is.
  static func problem(in page: [UInt8]) -> String? {
    let wrong = fixed.filter { page[$0.key] != $0.value }.keys.sorted()
    if let first = wrong.first {
      return "The header on page 1 is not that of a store: byte \(first) is \(page[first])."
    }
    guard pageCount(in: page) == nil else { return nil }
    // SQLite goes by the size of the file then, so that pages cut off at its end are not missed.
    return "The header on page 1 does not say how many pages there are."
  }

  /// The number of pages stated by page 1, if it can be relied on.
  ///
  /// https://www.sqlite.org/fileformat2.html#in_header_database_size
  static func pageCount(in page: [UInt8]) -> Int? {
    guard page[24..<28] == page[92..<96] else { return nil }
    let count = Int(pageNumber: page.bigEndian32(at: 28))
    return count > 0 ? count : nil
  }

  static func write(to page: UnsafeMutableRawPointer) {
    memset(page, 0, Layout.pageByteCount)
    page.copyMemory(from: "SQLite format 3\0", byteCount: 16)
    page.storeBytes(of: UInt16(Layout.pageByteCount).bigEndian, toByteOffset: 16, as: UInt16.self)
    // Write and read version 2: the database has a write-ahead log.
    for (offset, byte) in [18: 2, 19: 2, 20: UInt8(Layout.reserveByteCount), 21: 64, 22: 32, 23: 32] {
      page.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
    }
  }
}
