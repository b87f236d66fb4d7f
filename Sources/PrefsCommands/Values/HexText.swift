/// Bytes as hexadecimal digits.
enum HexText {
  static func text(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var result: [UInt8] = []
    for byte in bytes {
      result.append(digits[Int(byte >> 4)])
      result.append(digits[Int(byte & 0xf)])
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The bytes that `text` stands for, white space aside; nil when it is not pairs of digits.
  static func bytes(_ text: String) -> [UInt8]? {
    var result: [UInt8] = []
    var high: UInt8?
    for byte in text.utf8 where !AsciiSpace.contains(byte) {
      guard let digit = value(ofDigit: byte) else { return nil }
      if let first = high {
        result.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    return high == nil ? result : nil
  }

  /// The value of one hexadecimal digit.
  static func value(ofDigit byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

/// The white space of ASCII.
enum AsciiSpace {
  static func contains(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

  /// `text` without white space at its ends.
  static func trimming(_ text: String) -> String {
    var bytes = Substring(text).utf8
    while let first = bytes.first, contains(first) { bytes.removeFirst() }
    while let last = bytes.last, contains(last) { bytes.removeLast() }
    return String(Substring(bytes))
  }
}

extension AsciiSpace {
  /// `bytes` without white space at their ends when they are text; a binary property list is left as it is.
  static func trimmingText(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    guard !bytes.starts(with: "bplist".utf8) else { return bytes[...] }
    var rest = bytes[...]
    while let first = rest.first, contains(first) { rest.removeFirst() }
    while let last = rest.last, contains(last) { rest.removeLast() }
    return rest
  }
}
