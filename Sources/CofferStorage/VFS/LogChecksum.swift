/// The checksum of SQLite's log: two words, each accumulated over all preceding bytes.
///
/// https://www.sqlite.org/fileformat2.html#checksum_algorithm
struct LogChecksum: Equatable {
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  private init() {}

  /// The checksum stored in a deciphered header.
  init(storedAt pointer: UnsafeRawPointer) {
    first = UInt32(bigEndian: pointer.loadUnaligned(as: UInt32.self))
    second = UInt32(bigEndian: pointer.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
  }

  /// The checksum in the wal-index header, in this machine's byte order.
  init(nativeAt pointer: UnsafeRawPointer) {
    first = pointer.loadUnaligned(as: UInt32.self)
    second = pointer.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
  }

  /// Stores it as in a deciphered header.
  func store(at pointer: UnsafeMutableRawPointer) {
    pointer.storeBytes(of: first.bigEndian, as: UInt32.self)
    pointer.storeBytes(of: second.bigEndian, toByteOffset: 4, as: UInt32.self)
  }

  /// The checksum of a frame: the first 8 bytes of its header, and its decrypted page.
  init(ofFrameHeader header: [UInt8], page: [UInt8], after earlier: LogChecksum?, isBigEndian: Bool) {
    self = earlier ?? LogChecksum()
    header.withUnsafeBytes { add($0, isBigEndian: isBigEndian) }
    page.withUnsafeBytes { add($0, isBigEndian: isBigEndian) }
  }

  /// Adds bytes, whose count must be a multiple of 8.
  private mutating func add(_ bytes: UnsafeRawBufferPointer, isBigEndian: Bool) {
    for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
      let words = (
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
        bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      )
      first &+= (isBigEndian ? UInt32(bigEndian: words.0) : UInt32(littleEndian: words.0)) &+ second
      second &+= (isBigEndian ? UInt32(bigEndian: words.1) : UInt32(littleEndian: words.1)) &+ first
    }
  }

  /// The checksum of the wal-index header, stored after these bytes; both are in this machine's byte order.
  ///
  /// https://www.sqlite.org/walformat.html#the_wal_index_file_format
  static func ofIndexHeader(_ header: UnsafeRawPointer, byteCount: Int) -> UInt64 {
    var sum = LogChecksum()
    sum.add(UnsafeRawBufferPointer(start: header, count: byteCount), isBigEndian: 1.bigEndian == 1)
    return withUnsafeBytes(of: (sum.first, sum.second)) { $0.load(as: UInt64.self) }
  }

  /// Whether the log's header is one for pages of this size, and bytes 24..<32 are the checksum of bytes 0..<24.
  ///
  /// SQLite refuses a log of another version, and takes one with another magic number or page size for an empty one.
  static func isValid(logHeader: UnsafeRawPointer) -> Bool {
    func word(_ offset: Int) -> UInt32 {
      UInt32(bigEndian: logHeader.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    guard word(0) & ~1 == 0x377f_0682, word(4) == 3_007_000, word(8) == UInt32(Layout.pageByteCount) else {
      return false
    }
    // The lowest bit of the magic number says in which byte order the words are summed.
    let isBigEndian = word(0) & 1 == 1
    var sum = LogChecksum()
    sum.add(UnsafeRawBufferPointer(start: logHeader, count: 24), isBigEndian: isBigEndian)
    return sum == LogChecksum(storedAt: logHeader + 24)
  }
}
