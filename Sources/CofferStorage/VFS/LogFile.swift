import CSQLite
import CofferCrypto

/// The write-ahead log as SQLite sees it, decrypted.
///
/// Below, pages are sealed and the second half of each header, which holds the salts and a checksum over plaintext, is
/// enciphered.
///
/// All operations of SQLite's `wal.c` on a log; any other is refused:
///
/// | operation | where | when |
/// | --- | --- | --- |
/// | read 32 | 0 | recovery; opening without shared memory |
/// | write 32 | 0 | the first commit of a generation |
/// | write 24, then 4,096 | a frame, and behind its header | appending |
/// | write 4,096 | behind the header of a frame | a page changed again in the transaction that spilled it |
/// | read 8 | 24, or a frame + 16 | the checksum from which later ones are recomputed |
/// | read 4,120, then write 24 | a frame | recomputing checksums; recovery reads in the same way |
/// | read 4,096 | behind the header of a frame | reading a page; checkpoint |
/// | size, truncate, sync | | recovery; restart, checkpoint; commit |
///
/// If a sync fails, the frames of earlier commits are written again, see `sync`.
final class LogFile {
  let real: RealFile
  let identity: FileIdentity?
  let database: DatabaseFile
  var context: ConnectionContext { database.context }
  /// The frame whose header SQLite wrote last, stored in `header`; 0 if there is none.
  private var headerFrame: UInt32 = 0
  /// Whether that header waits for its page, so that both are written in one piece.
  private var isHeaderPending = false
  /// The page numbers of this write transaction's frames, from `firstFrame` on, so that a page changed again can be
  /// sealed without reading its frame back.
  @exclusivity(unchecked) private var pagesOfTransaction: [UInt32] = []
  private var firstFrame: UInt32 = 0
  /// The frame last read whole to recompute its checksum: its header alone may be written next.
  var frameReadWhole: UInt32 = 0
  /// The number of frames known to be synced before this transaction, sealed into each of its frames: a frame that is
  /// damaged though a later one says that it was synced, was not left so by a power cut.
  private var syncedFrameCount: UInt32 = 0
  /// The mark in the last committed frame, read as this connection takes the write lock.
  var lastMark: UInt32 = 0
  /// What the disk answered when a frame was last looked up.
  var lookupCode = SQLITE_OK
  /// The error of a disk that could not read a frame, so that nothing is known of the index; nil for a log that ends before.
  var lookupFailure: Int32? { [SQLITE_OK, COFFER_IOERR_SHORT_READ].contains(lookupCode) ? nil : lookupCode }
  /// The byte order of the log's checksums, as last read; see `currentHeader()`.
  var isBigEndian = false
  /// The salts in the log header that this connection read or wrote last.
  var salts: UInt64 = 0
  /// The end of the log at the last sync by this connection; nil if it failed.
  var syncedEnd: LogEnd?
  /// Whether there was no room to write ahead of a commit.
  var isWithoutRoom = false
  /// The end and generation of the log at the last examination of the frames after it.
  var knownEnd: (frame: UInt32, salts: UInt64)?
  /// Whether a write of this transaction has failed, so that what it wrote only takes up room.
  private var hasFailedWrite = false
  /// Whether this write transaction has started a generation, which the wal-index publishes with the commit.
  private var hasBegunGeneration = false
  /// Whether the file was empty when this generation's header was written.
  private var isFirstGeneration = false
  private let header = UnsafeMutableRawPointer.allocate(byteCount: Layout.frameHeaderByteCount, alignment: 8)
  let frame = UnsafeMutableRawPointer.allocate(byteCount: Layout.frameByteCount, alignment: 16)

  static let saltsOffset = 8
  private static let headerTailByteCount = 16

  init(real: RealFile, identity: FileIdentity?, database: DatabaseFile) {
    self.real = real
    self.identity = identity
    self.database = database
    database.log = self
  }

  deinit {
    database.log = nil
    Memory.wipe(UnsafeMutableRawBufferPointer(start: frame, count: Layout.frameByteCount))
    frame.deallocate()
    header.deallocate()
  }

  static func offset(ofFrame number: UInt32) -> Int64 {
    Int64(Layout.logHeaderByteCount) + (Int64(number) - 1) * Int64(Layout.frameByteCount)
  }

  /// The frame at `offset`, counted from 1, and the position in it.
  ///
  /// nil when SQLite has no number for it: corrupted shared memory may point anywhere.
  static func place(_ offset: Int64) -> (frame: UInt32, position: Int)? {
    let (frame, position) = (offset - Int64(Layout.logHeaderByteCount))
      .quotientAndRemainder(dividingBy: Int64(Layout.frameByteCount))
    return UInt32(exactly: frame + 1).map { ($0, Int(position)) }
  }

  // MARK: The transaction

  /// The salts of the log's current generation: an old frame that was put back does not authenticate under them.
  ///
  /// The wal-index has them, and the generation cannot change while this connection reads the log. Only a writer that
  /// has just started a new one has not published it yet.
  var generationSalts: UInt64 {
    hasBegunGeneration ? salts : database.indexSalts ?? salts
  }

  /// Discards a header whose page was never written.
  func dropPendingHeader() {
    isHeaderPending = false
  }

  /// - Parameter lastMark: The mark in the log's last frame.
  func beginWriteTransaction(lastMark: UInt32) {
    let (store, salts) = (context.store, generationSalts)
    var known = store.syncedFrameCount(salts: salts)
    // What other processes have synced is not known here. After a sync of its own, this one can say so in its frames;
    // without it, those of programs that commit once and end would say nothing.
    if known == nil, let count = database.committedFrameCount, count > lastMark {
      // If that fails, the sync of this transaction will fail, too, or none needs to.
      if sync(SQLITE_SYNC_NORMAL) != SQLITE_OK { context.clearFailure() }
      known = store.syncedFrameCount(salts: salts)
    }
    syncedFrameCount = max(lastMark, known ?? 0)
  }

  /// The number of frames of the current generation that a sync will cover.
  var writtenFrameCount: UInt32 {
    pagesOfTransaction.isEmpty ? database.committedFrameCount ?? 0 : headerFrame
  }

  /// Ends a transaction that is committed, or of which nothing counts.
  func endWriteTransaction() {
    if hasFailedWrite { giveBackRoom() }
    hasFailedWrite = false
    hasBegunGeneration = false
    // Most transactions are small and can reuse the memory.
    pagesOfTransaction.removeAll(keepingCapacity: pagesOfTransaction.count <= 1000)
  }

  /// Removes the frames of this transaction: on a full disk a checkpoint may need the room.
  private func giveBackRoom() {
    guard !pagesOfTransaction.isEmpty, database.committedFrameCount ?? .max < firstFrame else { return }
    // If that fails, the next transaction writes over them.
    _ = real.methods.xTruncate(real.file, Self.offset(ofFrame: firstFrame))
  }

  /// Whether SQLite asks for a sync between the header of a generation and its first frame, and none is needed.
  ///
  /// Without it, frames may reach the disk before the header. Where an earlier generation has frames, its header would
  /// then make a part of these valid again, up to the first new one: old pages over newer ones. Where there are none,
  /// frames without a header are no log.
  var needsNoSyncOfHeader: Bool { hasBegunGeneration && isFirstGeneration && pagesOfTransaction.isEmpty }

  /// The last frame of this write transaction, if it ends a commit.
  var lastCommitOfTransaction: UInt32? {
    guard !pagesOfTransaction.isEmpty, header.load(fromByteOffset: 4, as: UInt32.self) != 0 else { return nil }
    return headerFrame
  }

  /// The end of the log that a sync will cover; nil if the log has no commit.
  var writtenEnd: LogEnd? {
    guard !pagesOfTransaction.isEmpty else { return database.committedEnd }
    return lastCommitOfTransaction.map {
      LogEnd(salts: generationSalts, frameCount: $0, checksum: LogChecksum(storedAt: header + 16))
    }
  }

  // MARK: Writing

  private func write(_ buffer: UnsafeRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
    if offset == 0, count == Layout.logHeaderByteCount { return writeLogHeader(buffer) }
    guard offset >= Layout.logHeaderByteCount, let (number, position) = Self.place(offset) else {
      return database.refuse("writes \(count) at \(offset) of the log")
    }
    return switch (position, count) {
    case (0, Layout.frameHeaderByteCount): writeHeader(buffer, of: number)
    case (Layout.frameHeaderByteCount, Layout.pageByteCount): writePage(buffer, of: number)
    default: database.refuse("writes \(count) at \(offset) of the log")
    }
  }

  private func writeLogHeader(_ buffer: UnsafeRawPointer) -> Int32 {
    memcpy(frame, buffer, Layout.logHeaderByteCount)
    salts = buffer.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    hasBegunGeneration = true
    var size: Int64 = 0
    isFirstGeneration = real.byteCount(&size) == SQLITE_OK && size == 0
    syncedFrameCount = 0
    context.store.noteSync(ofFrames: 0, salts: salts)
    return writeHeader(byteCount: Layout.logHeaderByteCount, frame: 0, at: 0)
  }

  private func writeHeader(_ buffer: UnsafeRawPointer, of number: UInt32) -> Int32 {
    let code = flushPendingHeader()
    guard code == SQLITE_OK else { return code }
    memcpy(header, buffer, Layout.frameHeaderByteCount)
    headerFrame = number
    isHeaderPending = true
    // Only the checksum was recomputed: no page follows.
    if number == frameReadWhole { return flushPendingHeader() }
    notePage(of: number)
    return SQLITE_OK
  }

  /// Records the page number of the frame in `header`; frames after it were rolled back with a savepoint.
  private func notePage(of number: UInt32) {
    if pagesOfTransaction.isEmpty || number < firstFrame || Int(number - firstFrame) > pagesOfTransaction.count {
      pagesOfTransaction.removeAll(keepingCapacity: true)
      firstFrame = number
    }
    while pagesOfTransaction.count > Int(number - firstFrame) { pagesOfTransaction.removeLast() }
    pagesOfTransaction.append(UInt32(bigEndian: header.load(as: UInt32.self)))
  }

  /// Writes a header whose page did not follow.
  func flushPendingHeader() -> Int32 {
    guard isHeaderPending else { return SQLITE_OK }
    isHeaderPending = false
    frameReadWhole = 0
    memcpy(frame, header, Layout.frameHeaderByteCount)
    return writeHeader(
      byteCount: Layout.frameHeaderByteCount, frame: headerFrame, at: Self.offset(ofFrame: headerFrame))
  }

  /// Enciphers the tail of the header at the start of `frame`, and writes it with the bytes that follow.
  private func writeHeader(
    byteCount: Int, frame number: UInt32, at offset: Int64, with pageByteCount: Int = 0
  ) -> Int32 {
    do throws(CryptoError) {
      try context.codec.encipherHeader(tail: frame + byteCount - Self.headerTailByteCount, frame: number)
    } catch {
      context.fail(error, part: "log")
      return COFFER_IOERR_WRITE
    }
    return context.checked(real.write(frame, byteCount + pageByteCount, at: offset))
  }

  private func writePage(_ buffer: UnsafeRawPointer, of number: UInt32) -> Int32 {
    frameReadWhole = 0
    if isHeaderPending, headerFrame == number {
      isHeaderPending = false
      memcpy(frame, header, Layout.frameHeaderByteCount)
      let code = encryptPage(buffer, of: number)
      guard code == SQLITE_OK else { return code }
      return writeHeader(
        byteCount: Layout.frameHeaderByteCount, frame: number, at: Self.offset(ofFrame: number),
        with: Layout.pageByteCount)
    }
    // A page changed again in its own transaction; the frame keeps its header.
    let code = flushPendingHeader()
    guard code == SQLITE_OK else { return code }
    guard number >= firstFrame, Int(number - firstFrame) < pagesOfTransaction.count else {
      return database.refuse("writes a page of another transaction into frame \(number) of the log")
    }
    // Only a transaction's last frame has the database's size, and no frame is changed after it.
    frame.storeBytes(of: pagesOfTransaction[Int(number - firstFrame)].bigEndian, as: UInt32.self)
    frame.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
    let sealed = encryptPage(buffer, of: number)
    guard sealed == SQLITE_OK else { return sealed }
    return context.checked(
      real.write(
        frame + Layout.frameHeaderByteCount, Layout.pageByteCount,
        at: Self.offset(ofFrame: number) + Int64(Layout.frameHeaderByteCount)))
  }

  /// Seals a page into `frame`, bound to the header there.
  private func encryptPage(_ buffer: UnsafeRawPointer, of number: UInt32) -> Int32 {
    let page = UInt32(bigEndian: frame.load(as: UInt32.self))
    guard PageCodec.hasReserve(buffer, number: page) else {
      return database.refuse("writes page \(page) without the reserved bytes")
    }
    do throws(CryptoError) {
      try context.codec.encrypt(
        buffer, at: .log(frame: number, header: UnsafeRawPointer(frame), salts: generationSalts),
        mark: syncedFrameCount,
        into: frame + Layout.frameHeaderByteCount)
      return SQLITE_OK
    } catch {
      context.fail(error, part: "log")
      return COFFER_IOERR_WRITE
    }
  }
}

// MARK: - Methods

extension LogFile {
  @inline(__always)
  private static func with<Result>(_ file: UnsafeMutablePointer<sqlite3_file>?, _ body: (LogFile) -> Result) -> Result {
    OpenFile.withState(file!, body)
  }

  /// Written once, before any file is opened, and only read afterwards.
  nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: sqlite3_io_methods())
    // Shared memory and locks belong to the database file; version 1 has neither.
    methods.pointee.iVersion = 1
    methods.pointee.xClose = { file in
      let code = with(file) {
        _ = $0.flushPendingHeader()
        return $0.real.close()
      }
      OpenFile.releaseState(file!, of: LogFile.self)
      return code
    }
    methods.pointee.xRead = { file, buffer, count, offset in with(file) { $0.read(buffer!, Int(count), offset) } }
    methods.pointee.xWrite = { file, buffer, count, offset in
      with(file) {
        let code = $0.write(buffer!, Int(count), offset)
        if code != SQLITE_OK { $0.hasFailedWrite = true }
        return code
      }
    }
    methods.pointee.xTruncate = { file, size in
      with(file) {
        let code = $0.flushPendingHeader()
        guard code == SQLITE_OK else { return code }
        return $0.truncate(to: size)
      }
    }
    methods.pointee.xSync = { file, flags in with(file) { $0.sync(flags) } }
    methods.pointee.xFileSize = { file, result in
      with(file) { $0.context.checked($0.real.methods.xFileSize($0.real.file, result)) }
    }
    methods.pointee.xLock = { _, _ in SQLITE_OK }
    methods.pointee.xUnlock = { _, _ in SQLITE_OK }
    methods.pointee.xCheckReservedLock = { _, result in
      result!.pointee = 0
      return SQLITE_OK
    }
    methods.pointee.xFileControl = { file, operation, argument in
      with(file) { $0.real.methods.xFileControl($0.real.file, operation, argument) }
    }
    methods.pointee.xSectorSize = { file in with(file) { $0.real.methods.xSectorSize($0.real.file) } }
    methods.pointee.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    return UnsafePointer(methods)
  }()
}
