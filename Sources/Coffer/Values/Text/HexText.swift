/// Bytes as hexadecimal digits.
package enum HexText {
  package static func text(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var result: [UInt8] = []
    for byte in bytes {
      result.append(digits[Int(byte >> 4)])
      result.append(digits[Int(byte & 0xf)])
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The bytes of `text`, ignoring white space; nil if it is not pairs of digits.
  package static func bytes(_ text: String) -> [UInt8]? {
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
  package static func value(ofDigit byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
