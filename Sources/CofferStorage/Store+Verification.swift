import CSQLite
import CofferCrypto

/// What reading all pages of a store found.
package struct PageVerification: Sendable {
  package var count = 0
  package var damaged: [Int] = []
  /// Bits per byte, over the whole file.
  package var entropy = 0.0
}

extension Store {
  /// The page that SQLite never uses, because its file locks stand there.
  ///
  /// https://www.sqlite.org/fileformat2.html#the_lock_byte_page
  static let lockPage = 0x4000_0000 / Layout.pageByteCount + 1

  /// Reads and authenticates every page of the database file; the log is not looked at.
  package func verifyPages(progress: (Double) -> Void) throws -> PageVerification {
    try checkProcess()
    var result = PageVerification()
    var histogram = [Int](repeating: 0, count: 256)
    let codec = try PageCodec(keys: keys.keys)
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    let size = try fileByteCount()
    result.count = max(0, (size - Layout.envelopeByteCount) / Layout.pageByteCount)
    for number in stride(from: 1, through: result.count, by: 1) where number != Self.lockPage {
      var isAuthentic = false
      // A checkpoint of another process may be writing the page just now.
      for _ in 0..<3 where !isAuthentic {
        try readRaw(&page, at: Layout.envelopeByteCount + (number - 1) * Layout.pageByteCount)
        var copy = page
        isAuthentic = copy.withUnsafeMutableBytes { bytes in
          (try? codec.open(bytes.baseAddress!, at: .database(page: UInt32(number)), into: bytes.baseAddress!)) != nil
        }
      }
      for byte in page { histogram[Int(byte)] += 1 }
      if !isAuthentic { result.damaged.append(number) }
      if number % 256 == 0 { progress(Double(number) / Double(result.count)) }
    }
    result.entropy = Self.entropy(histogram)
    return result
  }

  private static func entropy(_ histogram: [Int]) -> Double {
    let total = Double(histogram.reduce(0, +))
    return histogram.reduce(0) { sum, count in
      guard count > 0 else { return sum }
      let share = Double(count) / total
      return sum - share * log2(share)
    }
  }
}
