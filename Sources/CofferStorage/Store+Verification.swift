import CSQLite
import CofferCrypto

/// What reading all pages of a store found.
package struct PageVerification: Sendable {
  /// How many pages the file has.
  package var count = 0
  /// The pages that do not authenticate, and that the log has no newer state of.
  package var damaged: [Int] = []
  /// The pages that the file ends before.
  package var missing: Range<Int> = 0..<0
  /// How many bytes stand in the file behind the last page.
  package var tailByteCount = 0
  /// The pages that hold something in clear: SQLite's magic at their beginning, or bytes that are not random.
  package var clear: [Int] = []
  /// Bits per byte, over the whole file.
  package var entropy = 0.0
  /// Bits per byte of the page where it is least.
  package var leastPageEntropy = 8.0
}

extension Store {
  /// How many bytes stand in the file behind the last page, where nothing looks for any; none while there are commits in
  /// the log, which may make the file shorter.
  package func tailByteCount() throws -> Int {
    var reader = try PageReader(self)
    for _ in 0..<10 where reader.tailByteCount > 0 && !reader.isUnchanged { reader = try PageReader(self) }
    return reader.tailByteCount
  }

  /// The page that SQLite never uses, because its file locks stand there.
  ///
  /// https://www.sqlite.org/fileformat2.html#the_lock_byte_page
  static let lockPage = 0x4000_0000 / Layout.pageByteCount + 1

  /// Of 4,096 random bytes hardly ever a set has fewer than 7.9 bits a byte; what is not compressed stays below 7.
  private static let leastEntropy = 7.5

  /// Reads and authenticates every page of the database file; what stands behind the last one is not read.
  package func verifyPages(progress: (Double) -> Void) throws -> PageVerification {
    try checkProcess()
    var result = PageVerification()
    var histogram = Histogram()
    let codec = try PageCodec(keys: keys.keys)
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    result.count = min(Layout.pageCount(inFileOf: try fileByteCount()), try PageReader(self).pageCount)
    for number in stride(from: 1, through: result.count, by: 1) where number != Self.lockPage {
      let isAuthentic = try readAuthentic(number, into: &page, codec)
      // A checkpoint of another process may also have cut the file, and the page off.
      if !isAuthentic, try Layout.pageCount(inFileOf: fileByteCount()) < number {
        result.count = number - 1
        break
      }
      if !isAuthentic { result.damaged.append(number) }
      // A checkpoint that was cut off leaves holes before the pages that it wrote: there is nothing in clear in them.
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
    // Where a commit and a checkpoint of another process came between its looks at the log and at the file, they disagree.
    for _ in 0..<10 where reader.presentCount < reader.pageCount && !reader.isUnchanged {
      reader = try PageReader(self)
    }
    // A page that the log had when it was read may have been folded in before the log was: then it is whole now.
    result.damaged = try result.damaged.filter { number in
      guard reader.log.frames[UInt32(number)] == nil else { return false }
      return try !readAuthentic(number, into: &page, codec)
    }
    result.tailByteCount = try tailByteCount()
    if reader.presentCount < reader.pageCount { result.missing = reader.presentCount + 1..<reader.pageCount + 1 }
    return result
  }

  /// Reads a page, and again where it does not authenticate: a checkpoint of another process may be writing it just now.
  private func readAuthentic(_ number: Int, into page: inout [UInt8], _ codec: PageCodec) throws -> Bool {
    for _ in 0..<3 {
      try readRaw(&page, at: Layout.offset(ofPage: number))
      var copy = page
      let isAuthentic = copy.withUnsafeMutableBytes { bytes in
        (try? codec.open(bytes.baseAddress!, at: .database(page: UInt32(number)), into: bytes.baseAddress!)) != nil
      }
      if isAuthentic { return true }
    }
    return false
  }

  /// Whether SQLite opens the file as it is, without the VFS: never, unless nothing is sealed.
  package var opensWithoutKey: Bool {
    guard let connection = try? SQLiteConnection(readingPlainFileAt: path) else { return false }
    try? connection.close()
    return true
  }
}

/// How often each byte occurs.
private struct Histogram {
  private var counts = [Int](repeating: 0, count: 256)

  mutating func add(_ bytes: [UInt8]) {
    for byte in bytes { counts[Int(byte)] += 1 }
  }

  mutating func add(_ other: Histogram) {
    for (byte, count) in other.counts.enumerated() { counts[byte] += count }
  }

  /// Shannon's, in bits per byte.
  var entropy: Double {
    let total = Double(counts.reduce(0, +))
    return counts.reduce(0) { sum, count in
      guard count > 0 else { return sum }
      let share = Double(count) / total
      return sum - share * log2(share)
    }
  }
}
