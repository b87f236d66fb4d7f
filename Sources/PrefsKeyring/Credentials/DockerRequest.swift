import Coffer
import PrefsCommands

/// A JSON object whose members are all strings, as docker gives a credential to a helper; the secret stays in protected memory.
struct DockerRequest {
  private(set) var server = ""
  private(set) var username = ""
  private(set) var secret: SecretBytes?

  private static let invalid = KeyringProblem(reason: "the input is not a JSON object of strings")

  /// - Throws: ``KeyringProblem``, which repeats nothing of the input.
  init(_ input: SecretBytes) throws {
    try input.withUnsafeBytes { bytes in
      var reader = Reader(rest: bytes[...])
      try reader.take(UInt8(ascii: "{"))
      if reader.isNext(UInt8(ascii: "}")) {
        try reader.take(UInt8(ascii: "}"))
      } else {
        try readMembers(&reader)
      }
      guard reader.isAtEnd else { throw Self.invalid }
    }
  }

  private mutating func readMembers(_ reader: inout Reader) throws {
    while true {
      let name = try Self.text(reader.string())
      try reader.take(UInt8(ascii: ":"))
      let value = try reader.string()
      // As docker's own helpers, which are written in Go, read names.
      switch name.lowercased() {
      case "serverurl": server = try Self.text(value)
      case "username": username = try Self.text(value)
      case "secret": secret = value
      default: break
      }
      guard reader.isNext(UInt8(ascii: ",")) else { return try reader.take(UInt8(ascii: "}")) }
      try reader.take(UInt8(ascii: ","))
    }
  }

  private static func text(_ value: SecretBytes) throws -> String {
    guard let text = value.text(0..<value.count) else { throw invalid }
    return text
  }

  // MARK: - JSON

  private struct Reader {
    var rest: Slice<UnsafeRawBufferPointer>

    private mutating func skipSpace() {
      rest = rest.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    }

    var isAtEnd: Bool {
      mutating get {
        skipSpace()
        return rest.isEmpty
      }
    }

    mutating func isNext(_ byte: UInt8) -> Bool {
      skipSpace()
      return rest.first == byte
    }

    mutating func take(_ byte: UInt8) throws {
      guard isNext(byte) else { throw DockerRequest.invalid }
      rest = rest.dropFirst()
    }

    /// The bytes of a string, unescaped.
    mutating func string() throws -> SecretBytes {
      try take(UInt8(ascii: "\""))
      // No longer unescaped than escaped.
      return try FileDescriptor.secret(capacity: rest.count) { buffer in
        var count = 0
        while let byte = rest.popFirst() {
          if byte == UInt8(ascii: "\"") { return count }
          guard byte >= 0x20 else { throw DockerRequest.invalid }
          if byte == UInt8(ascii: "\\") {
            for unit in try escaped().utf8 {
              buffer[count] = unit
              count += 1
            }
          } else {
            buffer[count] = byte
            count += 1
          }
        }
        throw DockerRequest.invalid
      }
    }

    private static let simple: [UInt8: UnicodeScalar] = [
      UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\", UInt8(ascii: "/"): "/", UInt8(ascii: "b"): "\u{8}",
      UInt8(ascii: "f"): "\u{C}", UInt8(ascii: "n"): "\n", UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
    ]

    /// What follows a backslash.
    private mutating func escaped() throws -> String {
      guard let byte = rest.popFirst() else { throw DockerRequest.invalid }
      if let scalar = Self.simple[byte] { return String(Character(scalar)) }
      guard byte == UInt8(ascii: "u") else { throw DockerRequest.invalid }
      var number = UInt32(try unit())
      if 0xD800..<0xDC00 ~= number {
        guard rest.popFirst() == UInt8(ascii: "\\"), rest.popFirst() == UInt8(ascii: "u") else {
          throw DockerRequest.invalid
        }
        let low = UInt32(try unit())
        guard 0xDC00..<0xE000 ~= low else { throw DockerRequest.invalid }
        number = 0x10000 + (number - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = UnicodeScalar(number) else { throw DockerRequest.invalid }
      return String(Character(scalar))
    }

    private mutating func unit() throws -> UInt16 {
      var number: UInt16 = 0
      for _ in 0..<4 {
        guard let digit = rest.popFirst().flatMap(HexText.value(ofDigit:)) else { throw DockerRequest.invalid }
        number = number << 4 | UInt16(digit)
      }
      return number
    }
  }
}

extension SecretBytes {
  /// The UTF-8 text as a JSON string with its quotes.
  ///
  /// - Throws: ``KeyringProblem`` for other bytes.
  func quotedJSON() throws -> SecretBytes {
    try withUnsafeBytes { bytes in
      guard Self.isText(bytes) else { throw KeyringProblem(reason: "the secret is not text") }
      return try FileDescriptor.secret(capacity: 6 * bytes.count + 2) { buffer in
        var count = 0
        func add(_ byte: UInt8) {
          buffer[count] = byte
          count += 1
        }
        add(UInt8(ascii: "\""))
        for byte in bytes {
          switch byte {
          case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            add(UInt8(ascii: "\\"))
            add(byte)
          case 0..<0x20:
            for digit in "\\u00".utf8 { add(digit) }
            let digits = Array("0123456789abcdef".utf8)
            add(digits[Int(byte >> 4)])
            add(digits[Int(byte & 0xF)])
          default: add(byte)
          }
        }
        add(UInt8(ascii: "\""))
        return count
      }
    }
  }

  /// Whether the bytes are UTF-8; makes no copy of them.
  private static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue: continue
      case .emptyInput: return true
      case .error: return false
      }
    }
  }
}
