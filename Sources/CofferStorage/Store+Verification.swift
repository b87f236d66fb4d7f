import CSQLite
import CofferCrypto

/// The result of reading all pages of a store.
package struct PageVerification: Sendable {
  /// The number of pages in the file.
  package var count = 0
  /// The pages that do not authenticate, and have no newer version in the log.
  package var damaged: [Int] = []
  /// The pages beyond the end of the file.
  package var missing: Range<Int> = 0..<0
  /// The number of bytes after the last page.
  package var tailByteCount = 0
  /// The pages with plaintext: they begin with SQLite's magic, or their bytes are not random.
  package var clear: [Int] = []
  /// What is wrong with the header on page 1, as a sentence; nil if nothing is, or the page is damaged.
  package var headerProblem: String?
  /// Bits per byte, over the whole file.
  package var entropy = 0.0
  /// Bits per byte of the page with the lowest entropy.
  package var leastPageEntropy = 8.0
}

extension Store {
  /// The number of unused bytes after the last page; 0 while commits in the log may shrink the file.
  package func tailByteCount() throws -> Int {
    var reader = try PageReader(self)
    for _ in 0..<10 where reader.tailByteCount > 0 && !reader.isUnchanged { reader = try PageReader(self) }
    return reader.tailByteCount
  }

  /// The page that contains SQLite's file locks and is never used otherwise.
  ///
  /// https://www.sqlite.org/fileformat2.html#the_lock_byte_page
  static let lockPage = 0x4000_0000 / Layout.pageByteCount + 1

  /// 4,096 random bytes hardly ever have less than 7.9 bits per byte; uncompressed data stays below 7.
  private static let leastEntropy = 7.5

  /// Reads and authenticates every page of the database file; bytes after the last page are not read.
  package func verifyPages(progress: (Double) -> Void) throws -> PageVerification {
    try checkProcess()
    var result = PageVerification()
    var histogram = Histogram()
    let codec = try StoreCodec(self)
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    result.count = min(Layout.pageCount(inFileOf: try fileByteCount()), try PageReader(self).pageCount)
    for number in stride(from: 1, through: result.count, by: 1) where number != Self.lockPage {
      let isAuthentic = try readAuthentic(number, into: &page, codec)
      // A checkpoint of another process may also have truncated the file.
      if !isAuthentic, try Layout.pageCount(inFileOf: fileByteCount()) < number {
        result.count = number - 1
        break
      }
      if !isAuthentic { result.damaged.append(number) }
      // An interrupted checkpoint leaves holes before the pages it wrote; they contain no plaintext.
      if !isAuthentic, page.allSatisfy({ $0 == 0 }) { continue }
      var ofPage = Histogram()
      ofPage.add(page)
      histogram.add(ofPage)
      let entropy = ofPage.entropy
      result.leastPageEntropy = min(result.leastPageEntropy, entropy)
      if entropy < Self.leastEntropy || page.starts(with: "SQLite format 3".utf8) { result.clear.append(number) }
      if number % 256 == 0 { progress(Double(number) / Double(result.count)) }
    }
    result.entropy = histogram.entropy
    var reader = try PageReader(self)
    if case .success(let first) = reader.page(1) { result.headerProblem = DatabaseHeader.problem(in: first) }
    // Log and file disagree if another process committed and checkpointed between the reads of the two.
    for _ in 0..<10 where reader.presentCount < reader.pageCount && !reader.isUnchanged {
      reader = try PageReader(self)
    }
    // A page of the log may have been checkpointed before the log was read: it is whole by now.
    result.damaged = try result.damaged.filter { number in
      guard reader.log.frames[UInt32(number)] == nil else { return false }
      return try !readAuthentic(number, into: &page, codec)
    }
    result.tailByteCount = try tailByteCount()
    if reader.presentCount < reader.pageCount { result.missing = reader.presentCount + 1..<reader.pageCount + 1 }
    return result
  }

  /// Reads a page, and again if it does not authenticate: another process's checkpoint may be writing it.
  private func readAuthentic(_ number: Int, into page: inout [UInt8], _ codec: StoreCodec) throws -> Bool {
    for attempt in 0..<3 {
      // It may have been interrupted in the midst of the page.
      if attempt > 0 { usleep(1000) }
      try readRaw(&page, at: Layout.offset(ofPage: number))
      var copy = page
      if try codec.open(&copy, at: .database(page: UInt32(number))) { return true }
    }
    return false
  }

  /// Checks that the disk has room for a log with every page, which rewriting all of them takes.
  ///
  /// A quota may leave less.
  ///
  /// - Throws: `StorageError.diskFull`.
  package func checkRoomToRewrite() throws {
    let isOfRoot = owner.user == 0 && geteuid() == 0
    guard let free = FilePath.freeByteCount(FilePath.folder(above: path), forRoot: isOfRoot) else { return }
    let needed = try PageReader(self).pageCount * Layout.frameByteCount - logByteCount
    guard needed <= 0 || free >= UInt64(needed) else { throw StorageError.diskFull(path: path) }
  }

  /// Whether SQLite opens the file without the VFS; true only if it is not encrypted.
  package var opensWithoutKey: Bool {
    guard let connection = try? SQLiteConnection(readingPlainFileAt: path) else { return false }
    try? connection.close()
    return true
  }
}

/// The number of occurrences of each byte.
private struct Histogram {
  private var counts = [Int](repeating: 0, count: 256)

  mutating func add(_ bytes: [UInt8]) {
    for byte in bytes { counts[Int(byte)] += 1 }
  }

  mutating func add(_ other: Histogram) {
    for (byte, count) in other.counts.enumerated() { counts[byte] += count }
  }

  /// Shannon entropy, in bits per byte.
  var entropy: Double {
    let total = Double(counts.reduce(0, +))
    return counts.reduce(0) { sum, count in
      guard count > 0 else { return sum }
      let share = Double(count) / total
      return sum - share * log2(share)
    }
  }
}
