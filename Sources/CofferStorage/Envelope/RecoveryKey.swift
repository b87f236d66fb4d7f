import CofferCrypto

/// A random key of last resort: printed once, kept on paper, typed back.
///
/// 160 random bits in eight groups of five characters, `5QK3N-…`, in Crockford's base 32, which has no I, L, O or U.
/// Each group has four characters of the key and one check character for them and the group's position, so that a
/// mistyped group is found and named.
public struct RecoveryKey: Sendable {
  /// The groups as they are written down, ASCII, separated by dashes.
  public let text: SecretBytes

  static let byteCount = 20
  private static let groupCount = 8
  private static let digitsOfGroup = 4
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

  /// Makes a new one.
  package init() throws {
    text = Self.text(of: try SecretBytes.random(count: Self.byteCount))
  }

  static func text(of key: SecretBytes) -> SecretBytes {
    let groupByteCount = digitsOfGroup + 2
    return key.withUnsafeBytes { key in
      SecretBytes(count: groupCount * groupByteCount - 1) { text in
        for group in 0..<groupCount {
          let start = group * groupByteCount
          if group > 0 { text[start - 1] = UInt8(ascii: "-") }
          var check = UInt8(group)
          for digit in 0..<digitsOfGroup {
            let value = Self.digit(group * digitsOfGroup + digit, of: key)
            text[start + digit] = alphabet[Int(value)]
            check = Self.next(check, value)
          }
          text[start + digitsOfGroup] = alphabet[Int(check)]
        }
      }
    }
  }

  /// Five bits of the key; index 0 is the first.
  private static func digit(_ index: Int, of key: UnsafeRawBufferPointer) -> UInt8 {
    let bit = index * 5
    let word = UInt16(key[bit / 8]) << 8 | (bit / 8 + 1 < key.count ? UInt16(key[bit / 8 + 1]) : 0)
    return UInt8(truncatingIfNeeded: word >> UInt16(11 - bit % 8)) & 31
  }

  /// Adds a digit to the check, in GF(2^5), x^5 + x^2 + 1: it detects any single wrong digit and any swap of two.
  private static func next(_ check: UInt8, _ digit: UInt8) -> UInt8 {
    let sum = check ^ digit
    return (sum << 1 ^ (sum & 16 == 0 ? 0 : 0b100101)) & 31
  }

  /// Decodes a typed key.
  ///
  /// Accepts lower case, O for 0, I or L for 1, and any spaces and dashes.
  ///
  /// - Throws: `StorageError.keyUnavailable`, naming the first group that is wrong.
  static func decode(_ text: SecretBytes) throws -> SecretBytes {
    try text.withUnsafeBytes { text in
      let digitCount = groupCount * (digitsOfGroup + 1)
      let digits = try SecretBytes(count: digitCount) { digits in
        var count = 0
        for byte in text where !isSeparator(byte) {
          guard count < digitCount else { throw wrong("it has more than \(digitCount) characters") }
          guard let value = value(of: byte) else {
            throw wrong("group \(count / (digitsOfGroup + 1) + 1) has an invalid character")
          }
          digits[count] = value
          count += 1
        }
        guard count == digitCount else { throw wrong("it has \(count) characters instead of \(digitCount)") }
      }
      return try digits.withUnsafeBytes { digits in
        try SecretBytes(count: byteCount) { key in
          var bit = 0
          for group in 0..<groupCount {
            var check = UInt8(group)
            for position in 0..<digitsOfGroup {
              let value = digits[group * (digitsOfGroup + 1) + position]
              check = next(check, value)
              let word = UInt16(value) << UInt16(11 - bit % 8)
              key[bit / 8] |= UInt8(word >> 8)
              if bit / 8 + 1 < key.count { key[bit / 8 + 1] |= UInt8(truncatingIfNeeded: word) }
              bit += 5
            }
            guard check == digits[group * (digitsOfGroup + 1) + digitsOfGroup] else {
              throw wrong("group \(group + 1) was mistyped")
            }
          }
        }
      }
    }
  }

  private static func wrong(_ what: String) -> StorageError {
    .keyUnavailable(reason: "not a recovery key: \(what)")
  }

  private static func isSeparator(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || byte == UInt8(ascii: " ") || (0x09...0x0d).contains(byte)
  }

  private static func value(of byte: UInt8) -> UInt8? {
    var letter = byte
    if (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) { letter -= 32 }
    switch letter {
    case UInt8(ascii: "O"): letter = UInt8(ascii: "0")
    case UInt8(ascii: "I"), UInt8(ascii: "L"): letter = UInt8(ascii: "1")
    default: break
    }
    return alphabet.firstIndex(of: letter).map(UInt8.init)
  }
}
