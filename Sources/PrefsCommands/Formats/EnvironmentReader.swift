import Coffer

/// Parses lines `NAME=value`, optionally with `export`, quoted as in a POSIX shell, and comments.
///
/// In double quotes `\n`, `\r` and `\t` are escapes, as in other `.env` parsers; nothing is expanded or run.
struct EnvironmentReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  mutating func variables() throws -> [String: Value] {
    var variables: [String: Value] = [:]
    while true {
      skip { AsciiSpace.contains($0) }
      guard let byte = peek() else { return variables }
      if byte == UInt8(ascii: "#") {
        skipLine()
        continue
      }
      let start = position
      let name = try name()
      guard variables.updateValue(.string(try value()), forKey: name) == nil else {
        throw FormatProblem("a name occurs twice, line \(line(at: start))")
      }
    }
  }

  // MARK: - Names

  private mutating func name() throws -> String {
    var name = word()
    if name == "export", let byte = peek(), byte == 0x20 || byte == 0x09 {
      skip { $0 == 0x20 || $0 == 0x09 }
      name = word()
    }
    guard let first = name.utf8.first, !(0x30...0x39).contains(first), take("=") else {
      throw FormatProblem("not NAME=value, line \(line(at: position))")
    }
    return name
  }

  private mutating func word() -> String {
    let start = position
    skip { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte & 0xdf) || "_.-".utf8.contains(byte)
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  // MARK: - Values

  private mutating func value() throws -> String {
    var result: [UInt8] = []
    var isQuoted = false
    while let byte = peek(), byte != UInt8(ascii: "\n") {
      position += 1
      switch byte {
      case 0: throw FormatProblem("it holds the character U+0000, line \(line(at: position))")
      case UInt8(ascii: "'"):
        isQuoted = true
        try appendSingleQuoted(to: &result)
      case UInt8(ascii: "\""):
        isQuoted = true
        try appendDoubleQuoted(to: &result)
      case UInt8(ascii: "\\"):
        guard let escaped = next() else { break }
        // An escaped newline is dropped.
        if escaped != UInt8(ascii: "\n") { result.append(escaped) }
      case 0x20, 0x09, 0x0d:
        let start = position - 1
        skip { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
        guard let following = peek(), following != UInt8(ascii: "\n") else { break }
        if following == UInt8(ascii: "#") {
          skipLine()
        } else if isQuoted {
          throw FormatProblem("text after the closing quote, line \(line(at: position))")
        } else if !result.isEmpty {
          result.append(contentsOf: bytes[start..<position])
        }
      default: result.append(byte)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private mutating func appendSingleQuoted(to result: inout [UInt8]) throws {
    let start = position
    while let byte = next() {
      if byte == UInt8(ascii: "'") { return }
      result.append(byte)
    }
    throw FormatProblem("a closing quote is missing, line \(line(at: start))")
  }

  private mutating func appendDoubleQuoted(to result: inout [UInt8]) throws {
    let start = position
    while let byte = next() {
      switch byte {
      case UInt8(ascii: "\""): return
      case UInt8(ascii: "\\"):
        guard let escaped = next() else { break }
        switch escaped {
        case UInt8(ascii: "n"): result.append(UInt8(ascii: "\n"))
        case UInt8(ascii: "r"): result.append(UInt8(ascii: "\r"))
        case UInt8(ascii: "t"): result.append(UInt8(ascii: "\t"))
        case UInt8(ascii: "\n"): break
        case _ where "\"\\$`".utf8.contains(escaped): result.append(escaped)
        default: result += [byte, escaped]
        }
      default: result.append(byte)
      }
    }
    throw FormatProblem("a closing quote is missing, line \(line(at: start))")
  }

  // MARK: - Bytes

  private func line(at position: Int) -> Int { bytes[..<position].count { $0 == UInt8(ascii: "\n") } + 1 }

  private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func next() -> UInt8? {
    guard let byte = peek() else { return nil }
    position += 1
    return byte
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek() == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func skip(while isSkipped: (UInt8) -> Bool) {
    while let byte = peek(), isSkipped(byte) { position += 1 }
  }

  private mutating func skipLine() {
    skip { $0 != UInt8(ascii: "\n") }
  }
}
