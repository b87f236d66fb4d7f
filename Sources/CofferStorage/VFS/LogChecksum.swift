/// The checksum of SQLite's log: two words, each summed over what came before.
///
/// https://www.sqlite.org/fileformat2.html#checksum_algorithm
struct LogChecksum: Equatable {
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  private init() {}

  /// As it stands in a header, in clear.
  init(storedAt pointer: UnsafeRawPointer) {
    first = UInt32(bigEndian: pointer.loadUnaligned(as: UInt32.self))
    second = UInt32(bigEndian: pointer.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
  }

  /// Of a frame: the first 8 bytes of its header, and its page in clear.
  init(ofFrameHeader header: [UInt8], page: [UInt8], after earlier: LogChecksum?, isBigEndian: Bool) {
    self = earlier ?? LogChecksum()
    header.withUnsafeBytes { add($0, isBigEndian: isBigEndian) }
    page.withUnsafeBytes { add($0, isBigEndian: isBigEndian) }
  }

  /// Sums bytes whose number is a multiple of 8.
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

  /// The magic number of a log whose words are summed in this machine's byte order.
  static var nativeMagic: UInt32 { 1.bigEndian == 1 ? 0x377f_0683 : 0x377f_0682 }

  /// Writes the checksum of bytes 0..<24 of a log's header, summed as `nativeMagic` says, behind them.
  static func complete(logHeader: UnsafeMutableRawPointer) {
    var sum = LogChecksum()
    sum.add(UnsafeRawBufferPointer(start: logHeader, count: 24), isBigEndian: 1.bigEndian == 1)
    logHeader.storeBytes(of: sum.first.bigEndian, toByteOffset: 24, as: UInt32.self)
    logHeader.storeBytes(of: sum.second.bigEndian, toByteOffset: 28, as: UInt32.self)
  }

  /// Whether bytes 24..<32 of the log's header are the checksum of bytes 0..<24.
  static func isValid(logHeader: UnsafeRawPointer) -> Bool {
    // The lowest bit of the magic number says in which byte order the words are summed.
    let isBigEndian = UInt32(bigEndian: logHeader.loadUnaligned(as: UInt32.self)) & 1 == 1
    var sum = LogChecksum()
    sum.add(UnsafeRawBufferPointer(start: logHeader, count: 24), isBigEndian: isBigEndian)
    return sum == LogChecksum(storedAt: logHeader + 24)
  }
}
