/// A position in bytes that moves forward.
struct ByteScanner {
  let bytes: [UInt8]
  private(set) var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { position == bytes.count }

  func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func next() -> UInt8? {
    guard position < bytes.count else { return nil }
    defer { position += 1 }
    return bytes[position]
  }

  /// Skips `text` if it comes next.
  mutating func take(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard count <= bytes.count - position,
      bytes[position..<position + count].elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: count))
    else { return false }
    position += count
    return true
  }

  /// Skips past the next `text`; returns the bytes before it, nil if there is none.
  mutating func take(through text: StaticString) -> ArraySlice<UInt8>? {
    let start = position
    while position < bytes.count {
      let end = position
      if take(text) { return bytes[start..<end] }
      position += 1
    }
    return nil
  }

  /// Takes bytes while `isTaken` holds, and returns them.
  mutating func take(while isTaken: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let start = position
    while let byte = peek(), isTaken(byte) { position += 1 }
    return bytes[start..<position]
  }

  mutating func skipSpace() {
    _ = take(while: AsciiSpace.contains)
  }
}
