import CSQLite
import CofferCrypto

/// The header of the wal-index, checked against the log.
///
/// The wal-index is shared memory without any authentication, and SQLite trusts it: an earlier header put back hides
/// the newest commits, and the next writer overwrites them. The frames of the log are sealed, so they show where it
/// really ends. A recovery, which reads only them, corrects the index.
///
/// https://www.sqlite.org/walformat.html#the_wal_index_file_format
struct WalIndex {
  private let index: UnsafeMutableRawPointer

  private static let headerByteCount = 48
  private static let backfillOffset = 96
  /// The page numbers of frames follow; the first region holds fewer because of the header.
  private static let prefixByteCount = 136
  private static let framesPerRegion = 4096
  private static let framesInFirstRegion = framesPerRegion - prefixByteCount / 4
  private static let knownVersion: UInt32 = 3_007_000

  /// The region and offset with the page number of a frame.
  @inline(__always)
  static func place(ofFrame frame: UInt32) -> (region: Int, offset: Int) {
    let number = Int(frame) - 1
    guard number >= framesInFirstRegion else { return (0, prefixByteCount + 4 * number) }
    let (region, position) = (number - framesInFirstRegion).quotientAndRemainder(dividingBy: framesPerRegion)
    return (region + 1, 4 * position)
  }

  // Copied, because a writer may publish another header meanwhile.
  private let version: UInt32
  private let isBigEndian: Bool
  private let pageByteCount: UInt16
  private let frameCount: UInt32
  private let pageCount: UInt32
  /// The checksum of the last frame.
  private let checksum: LogChecksum
  private let salts: UInt64

  /// nil if it is not mapped, or invalid, so that SQLite recovers it by itself.
  init?(_ index: UnsafeRawPointer?) {
    guard let index else { return nil }
    var copy = [UInt8](repeating: 0, count: Self.headerByteCount)
    copy.withUnsafeMutableBytes { $0.copyMemory(from: UnsafeRawBufferPointer(start: index, count: $0.count)) }
    let header = copy.withUnsafeBytes { header -> WalIndex? in
      guard let start = header.baseAddress, memcmp(start, index + header.count, header.count) == 0,
        start.load(fromByteOffset: 12, as: UInt8.self) != 0,
        LogChecksum.ofIndexHeader(start, byteCount: CommitCounter.offset)
          == start.loadUnaligned(fromByteOffset: CommitCounter.offset, as: UInt64.self)
      else { return nil }
      return WalIndex(UnsafeMutableRawPointer(mutating: index), header: start)
    }
    guard let header else { return nil }
    self = header
  }

  private init(_ index: UnsafeMutableRawPointer, header: UnsafeRawPointer) {
    self.index = index
    version = header.loadUnaligned(as: UInt32.self)
    isBigEndian = header.load(fromByteOffset: 13, as: UInt8.self) == 1
    pageByteCount = header.loadUnaligned(fromByteOffset: 14, as: UInt16.self)
    frameCount = header.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
    pageCount = header.loadUnaligned(fromByteOffset: 20, as: UInt32.self)
    checksum = LogChecksum(nativeAt: header + 24)
    salts = header.loadUnaligned(fromByteOffset: 32, as: UInt64.self)
  }

  /// The number of frames that were checkpointed.
  private var backfilledCount: UInt32 { index.load(fromByteOffset: Self.backfillOffset, as: UInt32.self) }

  /// Makes the next transaction recover the index.
  ///
  /// The copy that commits are counted by stays, so that the count does not return to an earlier one.
  func invalidate() {
    index.storeBytes(of: 0, toByteOffset: Self.headerByteCount + 12, as: UInt8.self)
  }

  /// Has a checkpoint begin at the first frame, unless the whole log was checkpointed.
  ///
  /// The number of frames that were is not authenticated: raised by someone, it would leave pages out. A checkpoint
  /// writes each page once, so beginning again costs at most the size of the database.
  func resetPartialBackfill() {
    guard backfilledCount > 0, backfilledCount != frameCount else { return }
    index.storeBytes(of: 0, toByteOffset: Self.backfillOffset, as: UInt32.self)
  }

  // MARK: Comparing

  /// Whether the log does not end where the index says, so that a recovery must come first.
  ///
  /// Call it while no other connection writes. True only if a recovery leads to another index, so it is true once.
  func isOutdated(log: LogFile, database: DatabaseFile) -> Bool {
    guard let header = log.currentHeader() else { return false }
    log.lastMark = 0
    if frameCount == 0 {
      // A writer is about to start another generation: then all frames of this one must be in the database.
      guard header.salts == salts else { return !isWholeLogCheckpointed(log, header, database) }
      return log.hasCommit(after: 0, checksum: header.checksum, header)
    }
    guard header.salts == salts, isOfLastFrame(log: log) else { return true }
    if backfilledCount >= frameCount {
      guard backfilledCount == frameCount, log.isCheckpointed(frameCount, salts: salts, database) else { return true }
    }
    return log.hasCommit(after: frameCount, checksum: checksum, header)
  }

  /// Whether the log's last frame, according to the index, is a commit with the size and the checksum named there.
  func isOfLastFrame(log: LogFile) -> Bool {
    log.lastMark = 0
    log.lookupCode = SQLITE_OK
    guard version == Self.knownVersion else { return false }
    // Without frames, a recovery leaves the size of a page at 0.
    guard frameCount > 0 else { return true }
    guard Int(pageByteCount) == Layout.pageByteCount else { return false }
    guard let frame = log.frameHeader(frameCount) else { return false }
    log.lastMark = frame.mark
    return frame.salts == salts && frame.pageCount == pageCount && frame.checksum == checksum
      && isBigEndian == log.isBigEndian
  }

  private func isWholeLogCheckpointed(
    _ log: LogFile, _ header: LogFile.CurrentHeader, _ database: DatabaseFile
  ) -> Bool {
    guard let last = log.lastCommit(salts: header.salts) else { return log.lookupFailure == nil }
    guard !log.isCheckpointed(last, salts: header.salts, database) else { return true }
    // Frames after a damaged one are no commits, as a recovery would say.
    return !log.hasCommit(after: 0, checksum: header.checksum, header)
  }
}

// MARK: - The log's own end

extension LogFile {
  struct CurrentHeader {
    let salts: UInt64
    let checksum: LogChecksum
  }

  struct CurrentFrame {
    let page: UInt32
    let pageCount: UInt32
    let salts: UInt64
    let checksum: LogChecksum
    let mark: UInt32
  }

  /// The header on the disk; nil if the log is empty, or its header damaged.
  func currentHeader() -> CurrentHeader? {
    guard real.read(frame, Layout.logHeaderByteCount, at: 0) == SQLITE_OK,
      lookingUp({ () throws(CryptoError) in try context.codec.decipherLogHeader(frame) }) ?? nil != nil
    else { return nil }
    isBigEndian = UInt32(bigEndian: frame.load(as: UInt32.self)) & 1 == 1
    return CurrentHeader(
      salts: frame.loadUnaligned(fromByteOffset: 16, as: UInt64.self), checksum: LogChecksum(storedAt: frame + 24))
  }

  /// Loads a frame into `frame` and returns its header; nil if it is not there whole, of an unknown epoch, or of no page.
  func frameHeader(_ number: UInt32) -> CurrentFrame? {
    lookupCode = real.read(frame, Layout.frameByteCount, at: Self.offset(ofFrame: number))
    guard lookupCode == SQLITE_OK,
      lookingUp({ () throws(CryptoError) in
        try context.codec.decipherHeader(
          tail: frame + Self.saltsOffset, frame: number, sealedPage: frame + Layout.frameHeaderByteCount)
      }) ?? false
    else { return nil }
    let page = UInt32(bigEndian: frame.load(as: UInt32.self))
    // Here a recovery of SQLite ends, too.
    guard page > 0 else { return nil }
    return CurrentFrame(
      page: page,
      pageCount: UInt32(bigEndian: frame.load(fromByteOffset: 4, as: UInt32.self)),
      salts: frame.load(fromByteOffset: 8, as: UInt64.self), checksum: LogChecksum(storedAt: frame + 16),
      mark: PageCodec.mark(ofSealedPage: frame + Layout.frameHeaderByteCount))
  }

  /// The result of a cipher; nil if something does not authenticate, or, as `lookupCode` then says, that cannot be known.
  private func lookingUp<Result>(_ body: () throws(CryptoError) -> Result) -> Result? {
    do throws(CryptoError) {
      return try body()
    } catch {
      if error != .authenticationFailed { lookupCode = SQLITE_NOMEM }
      return nil
    }
  }

  /// The page in `frame`, opened; nil if it does not authenticate.
  private func openPage(_ number: UInt32, salts: UInt64) -> [UInt8]? {
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    let isOpen = page.withUnsafeMutableBytes { output in
      lookingUp { () throws(CryptoError) in
        try context.codec.decrypt(
          frame + Layout.frameHeaderByteCount,
          at: .log(frame: number, header: UnsafeRawPointer(frame), salts: salts), into: output.baseAddress!)
      } != nil
    }
    return isOpen ? page : nil
  }

  /// Whether a whole commit follows a frame, as a recovery would find it.
  func hasCommit(after last: UInt32, checksum: LogChecksum, _ header: CurrentHeader) -> Bool {
    var (checksum, number) = (checksum, last)
    while number < .max, let next = frameHeader(number + 1), next.salts == header.salts {
      number += 1
      // Most often there is nothing, or a leftover that ends here.
      guard let page = openPage(number, salts: header.salts) else { return false }
      let bytes = Array(UnsafeRawBufferPointer(start: frame, count: 8))
      checksum = LogChecksum(ofFrameHeader: bytes, page: page, after: checksum, isBigEndian: isBigEndian)
      guard checksum == next.checksum else { return false }
      if next.pageCount > 0 { return true }
    }
    return false
  }

  /// The last frame of this generation that ends a commit; nil if there is none.
  func lastCommit(salts: UInt64) -> UInt32? {
    var size: Int64 = 0
    guard real.byteCount(&size) == SQLITE_OK else { return nil }
    // The generation's frames are the first ones.
    var low: UInt32 = 0
    var high = UInt32(clamping: max(0, size - Int64(Layout.logHeaderByteCount)) / Int64(Layout.frameByteCount))
    while low < high {
      let middle = low + (high - low) / 2 + 1
      if frameHeader(middle)?.salts == salts { low = middle } else { high = middle - 1 }
      guard lookupFailure == nil else { return nil }
    }
    while low > 0 {
      if let last = frameHeader(low), last.salts == salts, last.pageCount > 0, openPage(low, salts: salts) != nil {
        return low
      }
      guard lookupFailure == nil else { return nil }
      low -= 1
    }
    return nil
  }

  /// Whether a log whose header is damaged holds nothing that the database lacks: a power cut may tear the header of a new
  /// generation, which is written once the earlier one is checkpointed.
  var isLeftover: Bool {
    guard let salts = frameHeader(1)?.salts, let last = lastCommit(salts: salts) else {
      var size: Int64 = 0
      return real.byteCount(&size) == SQLITE_OK && size <= Layout.logHeaderByteCount
    }
    return isCheckpointed(last, salts: salts, database)
  }

  /// Whether the database has the page of a frame as the frame has it.
  func isCheckpointed(_ number: UInt32, salts: UInt64, _ database: DatabaseFile) -> Bool {
    guard let header = frameHeader(number), let page = openPage(number, salts: salts) else { return false }
    return page.withUnsafeBytes { database.hasPage(header.page, equalTo: $0.baseAddress!) }
  }

  /// Makes a commit that failed invalid in the log, where it is whole, but was not published.
  ///
  /// It was reported as failed, so no recovery may find it.
  func revokeCommit(after committed: UInt32) {
    guard let last = lastCommitOfTransaction, last > committed else { return }
    context.store.forgetSync(after: committed)
    syncedEnd = nil
    let zeros = [UInt8](repeating: 0, count: Layout.frameHeaderByteCount)
    _ = zeros.withUnsafeBytes { real.write($0.baseAddress!, $0.count, at: Self.offset(ofFrame: last)) }
  }
}
