/// Appends fields in the byte order of the format, big-endian like SQLite's own.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append<T: FixedWidthInteger>(_ value: T) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func append(_ more: some Sequence<UInt8>) {
    bytes.append(contentsOf: more)
  }
}

/// Reads fields one after the other; every read past the end is an error, never a trap.
struct ByteReader {
  struct Overrun: Error {}

  private let bytes: ArraySlice<UInt8>
  private(set) var position: Int

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  var isAtEnd: Bool { position == bytes.endIndex }

  mutating func read<T: FixedWidthInteger>(_ type: T.Type = T.self) throws(Overrun) -> T {
    var value: T = 0
    for byte in try read(count: MemoryLayout<T>.size) { value = value << 8 | T(truncatingIfNeeded: byte) }
    return value
  }

  mutating func read(count: Int) throws(Overrun) -> ArraySlice<UInt8> {
    guard count >= 0, bytes.endIndex - position >= count else { throw Overrun() }
    defer { position += count }
    return bytes[position..<position + count]
  }
}

extension ArraySlice<UInt8> {
  /// Whether both hold the same bytes.
  ///
  /// Uses memcmp(3); `==` compares byte by byte.
  func hasSameBytes(as other: Self) -> Bool {
    withUnsafeBytes { mine in
      other.withUnsafeBytes { theirs in
        guard mine.count == theirs.count else { return false }
        guard let first = mine.baseAddress, let second = theirs.baseAddress else { return true }
        return memcmp(first, second, mine.count) == 0
      }
    }
  }

  /// Whether all bytes are zero.
  var isZero: Bool {
    // No early exit, so that the compiler can vectorize the loop.
    withUnsafeBytes { $0.reduce(0, |) == 0 }
  }
}
