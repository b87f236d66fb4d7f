import Coffer
import PrefsCommands
import TOMLKit

/// Parses settings in TOML 1.0.
package enum TOMLReader {
  package static func tree(_ text: String) throws -> FileTree {
    var limits = TOMLLimits(text)
    try limits.check()
    do {
      let table = try TOMLTable(string: text)
      // Its nodes live as long as it.
      return try withExtendedLifetime(table) {
        .members(try members(of: table).map { FileTree.Member($0.name, try tree($0.node, depth: 1)) })
      }
    } catch let error as TOMLParseError {
      // The parser's own message may quote the file.
      throw FormatProblem("not TOML, line \(error.source.begin.line), column \(error.source.begin.column)")
    }
  }

  private static func members(of table: TOMLTable) -> [(name: String, node: TOMLValue)] {
    zip(table.keys, table.values).map { ($0, $1) }
  }

  private static func tree(_ node: TOMLValue, depth: Int) throws -> FileTree {
    guard depth < FileTree.outerLevels, let table = node.table else { return .value(try value(node, depth: depth)) }
    return .members(try members(of: table).map { FileTree.Member($0.name, try tree($0.node, depth: depth + 1)) })
  }

  private static func dictionary(_ table: TOMLTable, depth: Int) throws -> Value {
    var members: [String: Value] = [:]
    for (name, node) in Self.members(of: table) {
      guard members.updateValue(try value(node, depth: depth + 1), forKey: name) == nil else {
        throw FormatProblem(FileTree.reason(forSecond: name, in: members))
      }
    }
    return .dictionary(members)
  }

  private static func value(_ node: TOMLValue, depth: Int) throws -> Value {
    guard depth <= JSONReader.depthLimit else {
      throw FormatProblem("it nests deeper than \(JSONReader.depthLimit) levels")
    }
    let value: Value? =
      switch node.type {
      case .bool: node.bool.map(Value.bool)
      case .int: node.int.map { .int(Int64($0)) }
      case .double: node.double.map(Value.double)
      case .string: node.string.map(Value.string)
      case .array: try node.array.map { .array(try $0.map { try Self.value($0.tomlValue, depth: depth + 1) }) }
      case .table: try node.table.map { try dictionary($0, depth: depth) }
      case .date: node.date.flatMap { Timestamp.date(text($0)) }.map(Value.date)
      case .dateTime: try node.dateTime.flatMap { try PortableValue.date(try text($0)) }
      case .time: throw FormatProblem("a time without a date isn't supported; write it as text")
      }
    guard let value else { throw FormatProblem("not a value") }
    return value
  }

  // MARK: - Dates

  private static func text(_ date: TOMLDate) -> String {
    "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))"
  }

  private static func text(_ moment: TOMLDateTime) throws -> String {
    guard let offset = moment.offset?.offset else {
      throw FormatProblem("a date and time needs an offset; append Z or the offset")
    }
    let time = moment.time
    let clock =
      "\(padded(time.hour, 2)):\(padded(time.minute, 2)):\(padded(time.second, 2)).\(padded(time.nanoSecond, 9))"
    let sign = offset < 0 ? "-" : "+"
    return text(moment.date) + "T" + clock + sign + padded(abs(offset) / 60, 2) + ":" + padded(abs(offset) % 60, 2)
  }

  private static func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

/// Detects input that the parser handles badly, before parsing.
///
/// The parser does not bound the depth of tables made by dotted keys, ends text at U+0000, and reads a number too small
/// for 64 bits as zero. It ends the process when a date is followed by `T` and an invalid time, or by a space and a single
/// digit, when white space outside of ASCII is in the place of a value, when a table's name begins with an invalid
/// character, and when an array is closed by a brace.
private struct TOMLLimits {
  private let bytes: [UInt8]
  private var position = 0
  private var dots = 0
  /// The open brackets and braces.
  private var open: [UInt8] = []
  /// Whether the line so far contains only blanks.
  private var isAtLineStart = true
  private static let dotLimit = 32

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  mutating func check() throws {
    // Wherever it is, in comments too: the parser would read the file only up to it.
    if let index = bytes.firstIndex(of: 0) {
      position = index
      throw FormatProblem("not TOML: it holds the character U+0000, line \(line)")
    }
    // A byte order mark.
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { position = 3 }
    while let byte = next() {
      defer { isAtLineStart = byte == UInt8(ascii: "\n") || isAtLineStart && Self.isBlank(byte) }
      switch byte {
      case UInt8(ascii: "[") where isAtLineStart && open.isEmpty: try skipHeader()
      case UInt8(ascii: "#"): while let byte = peek(), byte != UInt8(ascii: "\n") { position += 1 }
      case UInt8(ascii: "\""), UInt8(ascii: "'"): try skipString(byte)
      case UInt8(ascii: "."):
        dots += 1
        guard dots <= Self.dotLimit else {
          throw FormatProblem("a name has more than \(Self.dotLimit) dots, line \(line)")
        }
      case UInt8(ascii: "T"), UInt8(ascii: "t"): try checkTime()
      case _ where Self.isDigit(byte): try checkNumber()
      case 0x80...: throw FormatProblem("not TOML: a character outside of ASCII needs quotes, line \(line)")
      case _ where "=,[]{}\n".utf8.contains(byte):
        dots = 0
        try follow(byte)
      default: break
      }
    }
  }

  /// Tracks open brackets and braces.
  private mutating func follow(_ byte: UInt8) throws {
    switch byte {
    case UInt8(ascii: "["), UInt8(ascii: "{"): open.append(byte)
    // The end of a table's name.
    case UInt8(ascii: "]") where open.isEmpty: break
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      guard open.popLast() == (byte == UInt8(ascii: "]") ? UInt8(ascii: "[") : UInt8(ascii: "{")) else {
        throw FormatProblem("not TOML: unmatched closing bracket, line \(line)")
      }
    default: break
    }
  }

  /// Moves to the beginning of a table's name, after its first bracket.
  private mutating func skipHeader() throws {
    dots = 0
    if peek() == UInt8(ascii: "[") { position += 1 }
    while let byte = peek(), Self.isBlank(byte) { position += 1 }
    guard let first = peek(), Self.isOfName(first) || first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") else {
      throw FormatProblem("not TOML: a table has no name, line \(line)")
    }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func isOfName(_ byte: UInt8) -> Bool {
    isDigit(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }

  /// Checks the text after a `T`.
  private func checkTime() throws {
    let word = bytes[position...].prefix { !" \t\r\n,]}#".utf8.contains($0) }
    // Because of the colon, the parser would take it for a time.
    guard let first = word.first, !Self.isDigit(first), word.contains(UInt8(ascii: ":")) else { return }
    let date = bytes[..<(position - 1)].suffix(10)
    let isDate = date.count == 10 && zip(date, "0000-00-00".utf8).allSatisfy { Self.isDigit($0) == Self.isDigit($1) }
    if isDate { throw FormatProblem("not TOML: a date is followed by T but no time, line \(line)") }
  }

  /// Checks a number that begins here: the parser would read 1e-400 as zero.
  private func checkNumber() throws {
    func isOfNumber(_ byte: UInt8) -> Bool { Self.isDigit(byte) || "_.eE+-".utf8.contains(byte) }
    let before = bytes[..<(position - 1)].last
    guard before.map({ $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || !isOfNumber($0) }) ?? true else { return }
    let text = String(
      decoding: bytes[(position - 1)...].prefix(while: isOfNumber).filter { $0 != UInt8(ascii: "_") }, as: UTF8.self)
    let isDate =
      text.utf8.count == 10 && zip(text.utf8, "0000-00-00".utf8).allSatisfy { Self.isDigit($0) == Self.isDigit($1) }
    if isDate, peek(9) == UInt8(ascii: " "), peek(10).map(Self.isDigit) ?? false, !(peek(11).map(Self.isDigit) ?? false)
    {
      throw FormatProblem("not TOML: a date is followed by a digit but no time, line \(line)")
    }
    if let number = Double(text), !DecimalText.isInRange(number, text) {
      throw FormatProblem("\(DecimalText.problem), line \(line)")
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

  private var line: Int { bytes[..<position].count { $0 == UInt8(ascii: "\n") } + 1 }

  private func peek(_ distance: Int = 0) -> UInt8? {
    position + distance < bytes.count ? bytes[position + distance] : nil
  }

  private mutating func next() -> UInt8? {
    guard let byte = peek() else { return nil }
    position += 1
    return byte
  }

  /// Skips a string after its first quote; the parser reports errors in it.
  private mutating func skipString(_ quote: UInt8) throws {
    var isMultiline = false
    if peek() == quote {
      guard peek(1) == quote else {
        position += 1
        return
      }
      position += 2
      isMultiline = true
    }
    while let byte = next() {
      if byte == UInt8(ascii: "\n"), !isMultiline { return }
      if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
        if ["u0000", "U00000000"].contains(where: { bytes[position...].starts(with: $0.utf8) }) {
          throw FormatProblem("the character U+0000 cannot be read from TOML, line \(line)")
        }
        position += 1
      } else if byte == quote {
        guard isMultiline else { return }
        if peek() == quote, peek(1) == quote {
          position += 2
          // Up to two quotes may precede the last three.
          while peek() == quote { position += 1 }
          return
        }
      }
    }
  }
}
