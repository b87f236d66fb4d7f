import CSQLite
import CofferCrypto

/// The store file as SQLite sees it: decrypted pages from offset 0.
///
/// Below, the envelope comes first and pages are sealed.
final class DatabaseFile {
  let real: RealFile
  let context: ConnectionContext
  /// nil for a connection that may write.
  let readOnlyAccess: ReadOnlyAccess?
  /// The file version that every page must come from while no lock excludes writers.
  var unlockedVersion: FileVersion?
  /// The log of this connection while it is open; it unregisters itself.
  unowned(unsafe) var log: LogFile?
  /// The regions of the mapped wal-index; empty where there is no shared memory, or it is not mapped yet.
  ///
  /// https://www.sqlite.org/walformat.html#the_wal_index_file_format
  @exclusivity(unchecked) var regions: [UnsafeRawPointer?] = []
  /// The first one.
  var index: UnsafeRawPointer?
  /// Whether the store's notice names this log.
  ///
  /// It cannot change before this connection releases its lock on the file, because it is cleared under an exclusive one.
  var hasLogNotice = false
  /// The version of the file when this connection found neither a notice nor a log with commits; no one writes into it meanwhile.
  var unnotedVersion: FileVersion?
  /// When a transaction that was about to begin last found that.
  var foundContentsAt: ContinuousClock.Instant?
  /// The notice of this log that was last read.
  var knownLogNotice: (bytes: [UInt8], notice: LogNotice)?
  /// Whether SQLite keeps the wal-index on the heap, because there is no shared memory.
  var lacksSharedMemory = false
  /// Whether it ever did; SQLite then treats shared memory as read-only until it has unmapped it.
  var hasLackedSharedMemory = false
  /// The file of the mapped wal-index.
  var indexIdentity: FileIdentity?
  /// Whether the open shared memory was verified to belong to the owner.
  var hasCheckedSharedMemory = false
  /// The locks, as bits, granted without shared memory to lock.
  var emptyLocks: Int32 = 0
  /// The lock of this connection as a reader.
  ///
  /// A recovery or a checkpoint has none while it takes the write lock.
  var readLock: Int32?
  var holdsWriteLock = false
  var holdsRecoveryLock = false
  var holdsCheckpointLock = false
  var checkpoint = CheckpointGuard()
  /// The lock on the file itself; to close, the last connection takes the exclusive one, and none in the wal-index.
  var fileLock = SQLITE_LOCK_NONE
  /// Whether this connection keeps others from restarting the log.
  var keepsLog: Bool { holdsWriteLock || holdsCheckpointLock || fileLock == SQLITE_LOCK_EXCLUSIVE }

  /// Whether a recovery will overwrite the part of the log that it leaves out.
  ///
  /// True if it holds the recovery lock, or if the last connection closes, which needs no further lock.
  var mayWriteOverLog: Bool { holdsRecoveryLock || fileLock == SQLITE_LOCK_EXCLUSIVE }
  /// The wal-index header's checksum at the last check whether the store was replaced.
  var lookedAtVersion: UInt64?
  /// When this call found the log and the index under their names; both are open from the first read until the end.
  var foundCompanionsAt: ContinuousClock.Instant?
  /// The wal-index header's checksum when this connection last released the write lock.
  var indexVersionAfterWrite: UInt64?
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
      // SQLite reads pages of the size that the first one gives. That authenticates, so someone with the key has written it.
      context.fail(.damaged(part: "page 1", reason: "it gives pages a size other than \(Layout.pageByteCount) bytes"))
      return COFFER_IOERR_DATA
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
    let code = context.checked(real.write(page, Layout.pageByteCount, at: offset + Self.shift))
    guard code == SQLITE_FULL, log?.giveBackZeros() == true else { return code }
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
    // To close, the last connection would write its log into the store, and remove what has the log's name.
    if level == SQLITE_LOCK_EXCLUSIVE, hasLostCompanion || !hasItsContents() { return SQLITE_BUSY }
    let code = context.checked(real.methods.xLock(real.file, level))
    guard code == SQLITE_OK else { return code }
    // It may have waited for a restore.
    if fileLock == SQLITE_LOCK_NONE, context.store.isReplaced {
      context.fail(.replaced(path: context.store.path))
      _ = real.methods.xUnlock(real.file, SQLITE_LOCK_NONE)
      return SQLITE_IOERR
    }
    fileLock = max(level, fileLock)
    if level == SQLITE_LOCK_EXCLUSIVE, !context.isCreating, !prepareClosing() {
      // SQLite then leaves the log as it is.
      fileLock = SQLITE_LOCK_SHARED
      _ = real.methods.xUnlock(real.file, SQLITE_LOCK_SHARED)
      return SQLITE_BUSY
    }
    return code
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
        if level == SQLITE_LOCK_NONE { ($0.hasLogNotice, $0.unnotedVersion) = (false, nil) }
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
        if $0.indexIdentity != nil { $0.context.store.endUseOfIndex() }
        $0.indexIdentity = nil
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
