import Coffer
import CofferCrypto

// The elements of every object: FLEET.md, Notation. Those of a packed carrier have the same.

extension [UInt8] {
  mutating func append(number value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }

  /// Appends the length of a string, in four bytes, and its UTF-8 bytes.
  mutating func append(text: String) {
    append(number: UInt32(text.utf8.count))
    append(contentsOf: text.utf8)
  }

  var digest: [UInt8] { get throws { try withUnsafeBytes { try SHA256.digest($0) } } }

  var hex: String {
    String(unsafeUninitializedCapacity: 2 * count) { text in
      for (index, byte) in enumerated() {
        text[2 * index] = Self.digit(byte >> 4)
        text[2 * index + 1] = Self.digit(byte & 15)
      }
      return 2 * count
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// Parses pairs of lowercase hexadecimal digits, and nothing else.
  init?(hex: some StringProtocol) {
    self = []
    reserveCapacity(hex.utf8.count / 2)
    var high: UInt8?
    for digit in hex.utf8 {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      default: return nil
      }
      if let first = high {
        append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    if high != nil { return nil }
  }
}

/// The bytes of an object do not follow FLEET.md.
struct MalformedObject: Error {
  let reason: String
}

/// Parses an object from its start, and throws for missing or invalid bytes.
struct ByteReader {
  /// The caller keeps them while the reader is in use.
  private var unread: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { unread = bytes }

  var isAtEnd: Bool { unread.isEmpty }

  /// The number of remaining bytes.
  var count: Int { unread.count }

  mutating func bytes(_ count: Int) throws(MalformedObject) -> UnsafeRawBufferPointer {
    guard count >= 0, count <= unread.count else { throw MalformedObject(reason: "it is truncated") }
    defer { unread = UnsafeRawBufferPointer(rebasing: unread[count...]) }
    return UnsafeRawBufferPointer(rebasing: unread[..<count])
  }

  mutating func array(_ count: Int) throws(MalformedObject) -> [UInt8] { Array(try bytes(count)) }

  mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(MalformedObject) -> Number {
    Number(bigEndian: try bytes(Number.bitWidth / 8).loadUnaligned(as: Number.self))
  }

  /// A length in four bytes, and as many bytes.
  mutating func counted() throws(MalformedObject) -> UnsafeRawBufferPointer { try bytes(Int(try number(UInt32.self))) }

  mutating func text() throws(MalformedObject) -> String {
    guard let text = String(validating: try counted(), as: UTF8.self) else {
      throw MalformedObject(reason: "it has text that is not UTF-8")
    }
    return text
  }

  mutating func rest() -> UnsafeRawBufferPointer {
    defer { unread = UnsafeRawBufferPointer(rebasing: unread[unread.count...]) }
    return unread
  }

  func end() throws(MalformedObject) {
    guard isAtEnd else { throw MalformedObject(reason: "there is data after its end") }
  }
}
