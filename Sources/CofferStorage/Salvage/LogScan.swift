import CSQLite
import CofferCrypto

/// The contents of a store's log, read without SQLite (`FORMAT.md`, Log).
package struct LogScan: Sendable {
  /// The size of the file; 0 when there is none.
  package private(set) var byteCount = 0
  /// The number of valid frames: those up to the last whole commit.
  package private(set) var committedFrameCount = 0
  /// The number of frames of the log's generation that are lost, because they are damaged or follow a damaged one.
  ///
  /// Whole frames of an unfinished commit are not counted.
  package private(set) var lostFrameCount = 0
  /// The first damaged frame, from 1; nil if there is none.
  package private(set) var firstDamagedFrame: Int?
  /// Whether a later frame says that the first damaged one had been synced.
  ///
  /// A power cut damages none of those, but may leave any part of unsynced ones.
  package private(set) var lostSyncedFrames = false
  /// Whether the header is damaged, so that SQLite treats the whole log as empty; false if no frame says that it had been
  /// synced, so that a power cut may have left it out.
  package private(set) var isHeaderDamaged = false
  /// The size of the database in pages after the last commit in the log; nil if it has none.
  package private(set) var pageCount: Int?
  /// The newest valid frame of each page.
  private(set) var frames: [UInt32: UInt32] = [:]
  /// The salts of the current generation, as stored in its frames.
  package private(set) var salts: UInt64 = 0

  /// The highest page number in the log.
  var lastPage: Int { frames.keys.max().map(Int.init(pageNumber:)) ?? 0 }

  /// The pages in the log with numbers above `last`, in order.
  func pages(after last: Int) -> [Int] {
    frames.keys.map(Int.init(pageNumber:)).filter { $0 > last }.sorted()
  }

  /// Reads the log of `store`, if there is one.
  package init(of store: Store) throws {
    try store.checkProcess()
    guard let file = try LogScanner(of: store) else { return }
    byteCount = Int(clamping: file.byteCount)
    try scan(file)
  }

  private mutating func scan(_ file: LogScanner) throws {
    // A log without frames is empty, whatever its header says.
    guard byteCount > Layout.logHeaderByteCount, try !file.wasEmptied() else { return }
    let header = try file.header()
    isHeaderDamaged = try header == nil && file.hasMark()
    var checksum = header?.checksum
    salts = header?.salts ?? 0
    var pending: [UInt32: UInt32] = [:]
    for number in stride(from: 1, through: file.frameCount, by: 1) {
      guard let frame = try file.frame(UInt32(number)) else { return try noteLoss(from: number, file) }
      // Without a header, the first frame supplies the salts and the initial checksum.
      if number == 1, header == nil {
        salts = frame.salts
      } else if frame.salts != salts {
        return try noteEnd(number, file)
      }
      guard let page = try file.decryptPage(salts: salts) else { return try noteLoss(from: number, file) }
      let sum = LogChecksum(ofFrameHeader: frame.header, page: page, after: checksum, isBigEndian: file.isBigEndian)
      // Frames of a rolled-back transaction also authenticate, but their checksums do not continue the chain.
      guard frame.page > 0, checksum == nil || sum == frame.checksum else { return }
      checksum = frame.checksum
      pending[frame.page] = UInt32(number)
      guard frame.pageCount > 0 else { continue }
      frames.merge(pending) { $1 }
      pending = [:]
      (committedFrameCount, pageCount) = (number, Int(pageNumber: frame.pageCount))
    }
    // A torn end: part of a frame that was never written whole.
    if file.hasTornFrame { try noteLoss(from: file.frameCount + 1, file) }
  }

  /// Handles the first frame with other salts: one of an earlier generation, or a damaged one.
  private mutating func noteEnd(_ number: Int, _ file: LogScanner) throws {
    if try file.lastFrame(ofGeneration: salts, from: number) != nil { try noteLoss(from: number, file) }
  }

  /// Counts the frames lost from frame `number` on.
  private mutating func noteLoss(from number: Int, _ file: LogScanner) throws {
    let last = try file.lastFrame(ofGeneration: salts, from: number)
    // Without salts, frames of different generations cannot be distinguished.
    guard let last = last ?? (isHeaderDamaged && salts == 0 ? file.frameCount : nil) else { return }
    firstDamagedFrame = number
    lostFrameCount = last - committedFrameCount
    lostSyncedFrames =
      try isHeaderDamaged || (number...last).contains { try file.mark(of: UInt32($0), salts: salts) ?? 0 >= number }
  }
}

/// Reads and opens frames one by one.
private final class LogScanner {
  struct Header {
    let salts: UInt64
    let checksum: LogChecksum
  }

  /// The header of a frame, deciphered.
  struct FrameHeader {
    let header: [UInt8]
    let page: UInt32
    let pageCount: UInt32
    let salts: UInt64
    let checksum: LogChecksum
  }

  private let file: EnvelopeFile
  private let codec: StoreCodec
  let byteCount: Int64
  private(set) var isBigEndian = false
  private var bytes = [UInt8](repeating: 0, count: Layout.frameByteCount)
  private var number: UInt32 = 0

  private var frameByteCount: Int64 { max(0, byteCount - Int64(Layout.logHeaderByteCount)) }

  /// A torn frame at the end counts, too.
  var frameCount: Int { Int(pageNumber: UInt32(clamping: frameByteCount / Int64(Layout.frameByteCount))) }

  var hasTornFrame: Bool { frameByteCount % Int64(Layout.frameByteCount) >= Layout.frameHeaderByteCount }

  /// nil when there is no log.
  init?(of store: Store) throws {
    let path = store.path + "-wal"
    let opened = try store.owner.acting { () -> EnvelopeFile? in
      guard try CompanionFile(path: path, store: store).identity() != nil else { return nil }
      do {
        // Opened as a database file, not as a log: for root, SQLite would change a log's owner to the store's.
        return try EnvelopeFile(path: path, below: store.below, isReadOnly: true)
      } catch StorageError.notFound {
        // The program that closed the store last has just removed it.
        return nil
      }
    }
    guard let opened else { return nil }
    file = opened
    codec = try StoreCodec(store)
    byteCount = try file.byteCount()
  }

  /// Whether the log was emptied, and then not truncated.
  func wasEmptied() throws -> Bool {
    var header = [UInt8](repeating: 0, count: Layout.logHeaderByteCount)
    try file.read(into: &header, at: 0)
    return header == Layout.emptiedLogHeader
  }

  /// The log's header; nil when it is damaged.
  func header() throws -> Header? {
    var header = [UInt8](repeating: 0, count: Layout.logHeaderByteCount)
    try file.read(into: &header, at: 0)
    return try header.withUnsafeMutableBytes { bytes in
      guard let start = bytes.baseAddress else { return nil }
      // The lowest bit of the magic number; a damaged one is assumed to be little-endian, as current machines write
      // it.
      isBigEndian = bytes.loadUnaligned(as: UInt32.self).bigEndian == 0x377f_0683
      guard try codec.decipherLogHeader(start) else { return nil }
      return Header(
        salts: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self), checksum: LogChecksum(storedAt: start + 24))
    }
  }

  /// Loads a frame, its page still sealed; nil when its epoch is unknown, or the disk cannot read it.
  func frame(_ number: UInt32) throws -> FrameHeader? {
    let offset = LogFile.offset(ofFrame: number)
    guard (try? file.read(into: &bytes, at: offset)) != nil else { return nil }
    self.number = number
    return try bytes.withUnsafeMutableBytes { bytes in
      guard let start = bytes.baseAddress,
        try codec.decipherHeader(tail: start + 8, frame: number, sealedPage: start + Layout.frameHeaderByteCount)
      else { return nil }
      return FrameHeader(
        header: Array(bytes[..<8]), page: UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)),
        pageCount: UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
        salts: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self), checksum: LogChecksum(storedAt: start + 16))
    }
  }

  /// Opens the page of the frame loaded last; nil when it does not authenticate.
  func decryptPage(salts: UInt64) throws -> [UInt8]? {
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    let isOpen = try bytes.withUnsafeBytes { frame in
      try page.withUnsafeMutableBytes { page in
        guard let frame = frame.baseAddress, let page = page.baseAddress else { return false }
        return try codec.open(
          frame + Layout.frameHeaderByteCount, at: .log(frame: number, header: frame, salts: salts), into: page)
      }
    }
    return isOpen ? page : nil
  }

  /// Whether any frame says that earlier ones had been synced, and with them the header.
  func hasMark() throws -> Bool {
    try stride(from: 1, through: min(frameCount, Int(LogFile.framesBehindEnd)), by: 1).contains { number in
      guard let salts = try frame(UInt32(number))?.salts else { return false }
      return try mark(of: UInt32(number), salts: salts) ?? 0 > 0
    }
  }

  /// The sync mark of a frame, if it authenticates.
  func mark(of number: UInt32, salts: UInt64) throws -> UInt32? {
    guard try frame(number) != nil, try decryptPage(salts: salts) != nil else { return nil }
    return bytes.withUnsafeBytes { PageCodec.mark(ofSealedPage: $0.baseAddress! + Layout.frameHeaderByteCount) }
  }

  /// The last frame from `number` on that was written to this generation: its page authenticates under the salts, or
  /// its header contains them.
  func lastFrame(ofGeneration salts: UInt64, from number: Int) throws -> Int? {
    let last = min(frameCount + (hasTornFrame ? 1 : 0), number + Int(LogFile.framesBehindEnd))
    return try stride(from: last, through: number, by: -1).first { try belongs(UInt32($0), salts: salts) }
  }

  private func belongs(_ number: UInt32, salts: UInt64) throws -> Bool {
    if try frame(number) != nil, try decryptPage(salts: salts) != nil { return true }
    let offset = LogFile.offset(ofFrame: number)
    guard (try? file.read(into: &bytes, at: offset)) != nil else { return false }
    return try bytes.withUnsafeBytes { frame in
      guard let start = frame.baseAddress else { return false }
      // The epochs of this generation are known by now.
      return try codec.pages.headerTail(start + 8, ofFrame: number, hasSalts: salts)
    }
  }
}

// MARK: - Pages

extension LogScan {
  /// Reads the pages in the log.
  final class Pages {
    private let scan: LogScan
    private let file: LogScanner?

    init(_ scan: LogScan, of store: Store) throws {
      self.scan = scan
      file = try scan.frames.isEmpty ? nil : LogScanner(of: store)
    }

    /// Whether the log has the newest version of a page.
    func has(_ page: Int) -> Bool { scan.frames[UInt32(page)] != nil }

    /// The log's version of a page; nil when it has none, or it no longer authenticates.
    func page(_ page: Int) -> [UInt8]? {
      guard let number = scan.frames[UInt32(page)], let file, (try? file.frame(number)) ?? nil != nil
      else { return nil }
      return (try? file.decryptPage(salts: scan.salts)) ?? nil
    }
  }
}
