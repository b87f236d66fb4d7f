import Coffer

/// Parses lines `NAME=value`, optionally with `export`, and comments, by the rule of ``EnvironmentQuotes``.
///
/// A value that shells, python-dotenv and Node's parser would read differently is a problem. Without quotes, spaces and
/// parentheses are part of the value where a shell fails: the other two agree. Nothing is expanded.
struct EnvironmentReader {
  private let bytes: [UInt8]
  private var position = 0
  private var counted = (position: 0, line: 1)
  /// What is wrong, by line.
  private var problems: [(line: Int, reason: String)] = []

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// - Throws: ``FormatProblem`` with all lines that are wrong.
  mutating func variables() throws -> FileTree {
    var variables = FileTree.Builder()
    while true {
      let start = position
      skip { $0 == 0x20 }
      let isIndented = position > start
      guard let byte = peek() else { break }
      if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") && isLineEnd(position) {
        if isIndented, hasMore { note("blanks alone, where Node begins the next name; remove them", at: start) }
        position += 1
        continue
      }
      if byte == UInt8(ascii: "#") {
        if isIndented { note("blanks before a comment, where Node begins the next name; remove them", at: start) }
        skipComment()
        continue
      }
      if AsciiSpace.contains(byte) {
        note("white space other than spaces before a name, which Node takes for a part of it; remove it", at: start)
        skipLine()
        continue
      }
      guard let (name, isExported) = name() else {
        note("not NAME=value", at: start)
        skipLine()
        continue
      }
      if !variables.append(name, .value(.string(value(isExported: isExported)))) {
        note("a name occurs twice", at: start)
      }
    }
    guard problems.isEmpty else { throw problem() }
    return variables.tree
  }

  /// The most lines that a message names.
  private static let shownProblems = 10

  private func problem() -> FormatProblem {
    let shown = problems.prefix(Self.shownProblems).map { "\($0.reason), line \($0.line)" }
    let rest = problems.count - shown.count
    return FormatProblem(shown.joined(separator: "; ") + (rest == 0 ? "" : "; and \(rest) more"))
  }

  /// Notes the first problem of a line.
  private mutating func note(_ reason: String, at position: Int) {
    let line = line(at: position)
    if problems.last?.line != line { problems.append((line, reason)) }
  }

  /// The line of a place, counted from the last one that was asked for: all lines of a long file may be wrong.
  private mutating func line(at position: Int) -> Int {
    let (from, to) = (min(position, counted.position), max(position, counted.position))
    let count = bytes[from..<to].count { $0 == UInt8(ascii: "\n") }
    counted = (position, position < counted.position ? counted.line - count : counted.line + count)
    return counted.line
  }

  // MARK: - Names

  /// The name, and whether `export` precedes it; nil if there is no name and equals sign.
  private mutating func name() -> (name: String, isExported: Bool)? {
    var name = word()
    var isExported = false
    if name == "export", take(" ") {
      isExported = true
      name = word()
    }
    guard let first = name.utf8.first, !(0x30...0x39).contains(first), take("=") else { return nil }
    return (name, isExported)
  }

  private mutating func word() -> String {
    let start = position
    skip { EnvironmentQuotes.isLetterOrDigit($0) || "_.-".utf8.contains($0) }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  // MARK: - Values

  /// The value, and moves past its line.
  private mutating func value(isExported: Bool) -> String {
    let start = position
    skip { $0 == 0x20 }
    let isDetached = position > start
    if isDetached, isExported, let byte = peek(), !"\r\n#".utf8.contains(byte) {
      note("blanks before a value after export, where a shell begins another name; remove them", at: start)
    }
    switch peek() {
    case UInt8(ascii: "'"):
      return quoted { EnvironmentQuotes.problem(inSingleQuotes: $0) }
    case UInt8(ascii: "\""): return quoted { EnvironmentQuotes.problem(inDoubleQuotes: $0) }
    default: return plain(isExported: isExported, isDetached: isDetached)
    }
  }

  /// - Parameter problem: Checks a value.
  private mutating func quoted(_ problem: (_ content: [UInt8]) -> String?) -> String {
    let start = position
    let quote = bytes[start]
    position += 1
    guard let end = bytes[position...].firstIndex(of: quote) else {
      note("a closing quote is missing", at: start)
      position = bytes.count
      return ""
    }
    let content = Self.withPlainLineEnds(bytes[position..<end])
    if let problem = problem(content) {
      let way =
        quote == UInt8(ascii: "\"") ? "; write the character itself, or use single quotes to keep it as it is" : ""
      note("\(problem)\(way)", at: start)
    }
    if content.contains(0) { note("it holds the character U+0000", at: start) }
    position = end + 1
    let afterQuote = position
    skip(while: Self.isBlankOrReturn)
    let isEnd = peek() == nil || peek() == UInt8(ascii: "\n")
    if !isEnd, peek() != UInt8(ascii: "#") || afterQuote == position {
      note("text after the closing quote, which shells, python-dotenv and Node read differently", at: position)
    }
    skipComment()
    return String(decoding: content, as: UTF8.self)
  }

  /// - Parameter isDetached: Whether blanks precede the value.
  private mutating func plain(isExported: Bool, isDetached: Bool) -> String {
    let start = position
    skipLine()
    var content = bytes[start..<position]
    if content.last == UInt8(ascii: "\r") { content.removeLast() }
    // A comment follows a space; a value that begins with # is checked below.
    for index in content.indices.dropFirst()
    where content[index] == UInt8(ascii: "#") && content[index - 1] == 0x20 {
      noteReturn(in: content[index...])
      content = content[..<index]
      break
    }
    while content.last == 0x20 { content.removeLast() }
    let problem =
      EnvironmentQuotes.problem(outsideQuotes: content, isExported: isExported)
      ?? EnvironmentQuotes.problem(inWords: content, isExported: isExported, isDetached: isDetached)
    if let problem {
      note("\(problem) and other readers do not; put the value in quotes", at: start)
    } else if String(decoding: content, as: UTF8.self).unicodeScalars.contains(where: {
      $0.value > 0x7f && $0.properties.isWhitespace
    }) {
      note("white space that is not ASCII, which some readers drop; put the value in quotes", at: start)
    }
    return String(decoding: content, as: UTF8.self)
  }

  /// CR LF as a newline: python-dotenv and Node read it so, and a shell can use no file with such line ends.
  private static func withPlainLineEnds(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    bytes.indices.compactMap { index in
      let isLineEnd =
        bytes[index] == UInt8(ascii: "\r") && index + 1 < bytes.endIndex && bytes[index + 1] == UInt8(ascii: "\n")
      return isLineEnd ? nil : bytes[index]
    }
  }

  // MARK: - Bytes

  private static func isBlankOrReturn(_ byte: UInt8) -> Bool { " \t\r".utf8.contains(byte) }

  /// Whether the carriage return at a place belongs to the end of its line.
  private func isLineEnd(_ position: Int) -> Bool {
    position + 1 == bytes.count || bytes[position + 1] == UInt8(ascii: "\n")
  }

  private var hasMore: Bool { bytes[position...].contains { !AsciiSpace.contains($0) } }

  private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

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

  private mutating func skipComment() {
    let start = position
    skipLine()
    var comment = bytes[start..<position]
    if comment.last == UInt8(ascii: "\r") { comment.removeLast() }
    noteReturn(in: comment)
  }

  private mutating func noteReturn(in comment: ArraySlice<UInt8>) {
    guard let place = comment.firstIndex(of: UInt8(ascii: "\r")) else { return }
    note("a carriage return in a comment, where python-dotenv ends it", at: place)
  }
}
