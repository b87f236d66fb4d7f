/// The checksum of SQLite's log, as far as the VFS needs it: to know its own header again.
///
/// https://www.sqlite.org/fileformat2.html#checksum_algorithm
enum LogChecksum {
  /// Whether bytes 24..<32 of the log's header are the checksum of bytes 0..<24.
  static func isValid(logHeader: UnsafeRawPointer) -> Bool {
    func word(_ index: Int) -> UInt32 { logHeader.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self) }
    // The lowest bit of the magic number says in which byte order the words are summed.
    let isBigEndian = UInt32(bigEndian: word(0)) & 1 == 1
    var sum: (UInt32, UInt32) = (0, 0)
    for index in stride(from: 0, to: 6, by: 2) {
      let words = (word(index), word(index + 1))
      sum.0 &+= (isBigEndian ? UInt32(bigEndian: words.0) : UInt32(littleEndian: words.0)) &+ sum.1
      sum.1 &+= (isBigEndian ? UInt32(bigEndian: words.1) : UInt32(littleEndian: words.1)) &+ sum.0
    }
    return UInt32(bigEndian: word(6)) == sum.0 && UInt32(bigEndian: word(7)) == sum.1
  }
}
