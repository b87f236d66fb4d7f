import CSQLite

/// The bytes among the first 100 of page 1 that are the same in every store.
///
/// https://www.sqlite.org/fileformat2.html#the_database_header
enum DatabaseHeader {
  /// What a store's page 1 always says, by the offset of the byte: the size of a page, a write-ahead log, the reserved bytes,
  /// the newest schema format, no automatic vacuum, UTF-8 (https://www.sqlite.org/fileformat2.html#the_database_header).
  private static let fixed: [Int: UInt8] = [
    16: UInt8(Layout.pageByteCount >> 8), 17: 0, 18: 2, 19: 2, 20: UInt8(Layout.reserveByteCount), 21: 64, 22: 32,
    23: 32,
    44: 0, 45: 0, 46: 0, 47: 4, 52: 0, 53: 0, 54: 0, 55: 0, 56: 0, 57: 0, 58: 0, 59: 1, 64: 0, 65: 0, 66: 0, 67: 0,
  ]

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
    for (offset, byte) in fixed { page.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self) }
  }
}
