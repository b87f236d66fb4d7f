// Variable-length integers: seven bits per byte, lowest first, with the high bit set on all but the last byte (LEB128).

extension [UInt8] {
  mutating func append(varint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }

  mutating func append(bigEndian value: UInt64) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}

extension Collection<UInt8> where SubSequence == Self {
  /// Takes a varint from the front; nil if there is none, or it does not fit in 64 bits.
  mutating func popVarint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      guard let byte = popFirst() else { return nil }
      let bits = UInt64(byte & 0x7f)
      guard (bits << shift) >> shift == bits else { return nil }
      value |= bits << shift
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }
}
