/// The rule for values in `.env` files: what POSIX shells, python-dotenv and Node's parser read alike.
///
/// Shells expand and unescape; python-dotenv unescapes in quotes, in its own way, and replaces `${NAME}` even in single
/// quotes; Node drops carriage returns, begins a comment at any `#`, and knows only `\n` in double quotes.
enum EnvironmentQuotes {
  /// The text in quotes.
  ///
  /// - Throws: ``FormatProblem`` if there is no form that all of them read alike.
  static func quoted(_ text: String) throws -> String {
    let bytes = Array(text.utf8)
    guard let problem = problem(inSingleQuotes: bytes) else { return "'\(text)'" }
    if self.problem(inDoubleQuotes: bytes) == nil { return "\"\(text)\"" }
    throw FormatProblem(
      "it holds \(problem), and shells, python-dotenv and Node read no form of it alike; use another format")
  }

  // MARK: - Where readers differ

  static func problem(inSingleQuotes bytes: some RandomAccessCollection<UInt8>) -> String? {
    first(in: bytes) { byte, next in
      switch (byte, next) {
      case (UInt8(ascii: "'"), _): "an apostrophe"
      case (UInt8(ascii: "\\"), UInt8(ascii: "\\")?): "two backslashes, of which python-dotenv reads one"
      case (UInt8(ascii: "\\"), nil): backslashAtEnd
      case (UInt8(ascii: "$"), UInt8(ascii: "{")?): "${, which python-dotenv replaces"
      default: lineEnd(byte)
      }
    }
  }

  static func problem(inDoubleQuotes bytes: some RandomAccessCollection<UInt8>) -> String? {
    first(in: bytes) { byte, next in
      switch byte {
      case UInt8(ascii: "\""): "a quote"
      case UInt8(ascii: "`"): "a backquote, which a shell runs"
      case UInt8(ascii: "$") where next.map(expands) ?? false: "a $, which a shell expands"
      // bash 5.2 drops a U+007F there.
      case UInt8(ascii: "\\") where next.map("\\'\"abfnrtv$`\n\u{7f}".utf8.contains) ?? false:
        "an escape, which shells, python-dotenv and Node read differently"
      case UInt8(ascii: "\\") where next == nil: backslashAtEnd
      default: lineEnd(byte)
      }
    }
  }

  static func problem(outsideQuotes bytes: some RandomAccessCollection<UInt8>, isExported: Bool) -> String? {
    var previous: UInt8?
    return first(in: bytes) { byte, next in
      defer { previous = byte }
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\""): return "a quote inside a word, which a shell drops"
      case UInt8(ascii: "`"): return "a backquote, which a shell runs"
      case UInt8(ascii: "\\"): return "a backslash, which a shell drops"
      case UInt8(ascii: "$") where next.map(expands) ?? false: return "a $, which a shell expands"
      case UInt8(ascii: "#"): return "a #, where Node begins a comment and a shell may not"
      case UInt8(ascii: ";"), UInt8(ascii: "&"), UInt8(ascii: "|"), UInt8(ascii: "<"), UInt8(ascii: ">"):
        return "a \(Unicode.Scalar(byte)), where a shell ends the value"
      case UInt8(ascii: "(") where previous == nil: return "a parenthesis, where a shell begins a list"
      case UInt8(ascii: "~") where previous == nil || previous == UInt8(ascii: ":"):
        return "a ~, which a shell replaces with the home folder"
      case UInt8(ascii: "{") where isExported: return "a brace after export, which a shell expands"
      case 0x20: return nil
      case 0x09 where previous != nil && next != nil: return nil
      case 0..<0x20, 0x7f: return "a control character, which a shell keeps"
      default: return nil
      }
    }
  }

  /// What is wrong with the blanks in a value without quotes: that a shell assigns the first word alone.
  ///
  /// If another word is no assignment, a shell takes that for a command, and assigns nothing.
  static func problem(inWords bytes: ArraySlice<UInt8>, isExported: Bool, isDetached: Bool) -> String? {
    let others = bytes.split { $0 == 0x20 || $0 == 0x09 }.dropFirst(isDetached ? 0 : 1)
    if others.isEmpty { return nil }
    if isExported { return "a blank after export, where a shell ends the value" }
    return others.allSatisfy(isAssignment) ? "a blank before another assignment, which a shell makes" : nil
  }

  private static func isAssignment(_ word: ArraySlice<UInt8>) -> Bool {
    guard let end = word.firstIndex(of: UInt8(ascii: "=")), end > word.startIndex else { return false }
    let name = word[..<end]
    return !(0x30...0x39).contains(name[name.startIndex])
      && name.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "_") }
  }

  private static func first(
    in bytes: some RandomAccessCollection<UInt8>, _ reason: (_ byte: UInt8, _ next: UInt8?) -> String?
  ) -> String? {
    for index in bytes.indices {
      let next = bytes.index(after: index)
      if let reason = reason(bytes[index], next < bytes.endIndex ? bytes[next] : nil) { return reason }
    }
    return nil
  }

  private static let backslashAtEnd = "a backslash at the end, which python-dotenv takes for an escape of the quote"

  private static func lineEnd(_ byte: UInt8) -> String? {
    byte == UInt8(ascii: "\r") ? "a carriage return, which Node drops" : nil
  }

  /// Whether a shell expands `$` before this.
  private static func expands(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || "_{([*@#?-$!".utf8.contains(byte)
  }

  /// Whether a byte is an ASCII letter or digit.
  static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte & 0xdf)
  }
}
