import CYaml
import PrefsCommands

/// Refuses what libyaml reads as something else than YAML 1.2 does, or takes although it is not YAML, where text would be
/// lost or changed without a word.
///
/// It looks at the characters of each event, and at those between two events, where libyaml has found blanks, marks and
/// comments.
struct YAMLDifferences {
  /// The characters, by which the parser counts.
  private let characters: [Unicode.Scalar]
  /// The end of the text that was looked at.
  private var end = 0

  /// - Throws: ``FormatProblem``, which never quotes the file.
  init(_ text: String) throws {
    characters = Array(text.unicodeScalars)
    // The first one is not in the text: libyaml would drop a second one.
    if text.utf8.starts(with: "\u{feff}".utf8) {
      throw FormatProblem("not YAML: two byte order marks, line 1, column 1")
    }
    // YAML 1.1, and libyaml, end lines with these, and comments too. YAML 1.2 does not.
    if let index = characters.firstIndex(where: { $0 == "\u{85}" || $0 == "\u{2028}" || $0 == "\u{2029}" }) {
      throw FormatProblem(
        "unsupported YAML: one of the characters U+0085, U+2028 and U+2029, which end a line in YAML 1.1 only; write \\N, \\L "
          + "or \\P in double quotes, \(place(index))")
    }
  }

  /// - Throws: ``FormatProblem``, which never quotes the file.
  mutating func check(_ event: yaml_event_t, at place: YAMLPlace) throws {
    let start = min(Int(event.start_mark.index), characters.count)
    let next = max(start, min(Int(event.end_mark.index), characters.count))
    // A document begins with its directives, which may have comments.
    try checkComments(from: end, to: event.type == YAML_DOCUMENT_START_EVENT ? next : start)
    // An empty value is where its mark is, before the end of that.
    end = max(end, next)
    switch event.type {
    case YAML_ALIAS_EVENT: try checkName(YAMLEvents.text(event.data.alias.anchor), after: "*", in: start..<next, place)
    case YAML_SCALAR_EVENT:
      let scalar = event.data.scalar
      try checkName(YAMLEvents.text(scalar.anchor), after: "&", in: start..<next, place)
      if scalar.style == YAML_PLAIN_SCALAR_STYLE, scalar.length == 1, scalar.value[0] == UInt8(ascii: "-") {
        throw FormatProblem("unsupported YAML: a word is only a -; put it in quotes, \(place)")
      }
      if scalar.style == YAML_LITERAL_SCALAR_STYLE || scalar.style == YAML_FOLDED_SCALAR_STYLE {
        let isEmpty = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
          .allSatisfy { $0 == UInt8(ascii: "\n") }
        try checkBlock(start..<next, isEmpty: isEmpty, place)
      }
    case YAML_SEQUENCE_START_EVENT:
      try checkName(YAMLEvents.text(event.data.sequence_start.anchor), after: "&", in: start..<next, place)
    case YAML_MAPPING_START_EVENT:
      try checkName(YAMLEvents.text(event.data.mapping_start.anchor), after: "&", in: start..<next, place)
    default: break
    }
  }

  // MARK: - Words

  /// The `?` of `[?x]` is taken for the mark of a key, and the name of an anchor or alias such as `&a:b` ends before the colon.
  private func checkName(_ name: String?, after sign: Unicode.Scalar, in event: Range<Int>, _ place: YAMLPlace) throws {
    let start = event.lowerBound
    if !event.isEmpty, start > 0, characters[start - 1] == "?" {
      throw FormatProblem("unsupported YAML: a word begins with ?; put it in quotes, \(place)")
    }
    // A tag may precede an anchor.
    guard let name, let first = characters[start...].firstIndex(of: sign) else { return }
    let end = first + 1 + name.unicodeScalars.count
    if end < characters.count, "?:%@`".unicodeScalars.contains(characters[end]) {
      throw FormatProblem("unsupported YAML: the name of an anchor has more than letters, digits, - and _, \(place)")
    }
  }

  // MARK: - Comments

  /// The text after a comma, a quote or a bracket may be meant: `[red,#fff]`.
  private func checkComments(from start: Int, to end: Int) throws {
    var index = start
    while index < end, let mark = characters[index..<end].firstIndex(of: "#") {
      guard mark == 0 || Self.isSpace(characters[mark - 1]) else { throw comment(mark) }
      index = endOfLine(mark) ?? end
    }
  }

  private func comment(_ mark: Int) -> FormatProblem {
    FormatProblem("not YAML: a comment has no space before it; put text with # in quotes, \(place(mark))")
  }

  // MARK: - Blocks

  /// A text after `|` or `>`.
  private func checkBlock(_ block: Range<Int>, isEmpty: Bool, _ place: YAMLPlace) throws {
    let mark = self.mark(block)
    let header = characters[mark..<block.upperBound].prefix { !Self.isSpace($0) }
    if let mark = header.firstIndex(of: "#") { throw comment(mark) }
    guard let start = endOfLine(mark) else { return }
    // Readers differ in whether the end of the file ends a line, too.
    let isLast = characters[block.upperBound...].allSatisfy { $0 == " " || $0 == "\t" }
    if isLast, !(characters.last.map(Self.endsLine) ?? true), !header.contains("-") {
      throw FormatProblem(
        "unsupported YAML: the file ends within a block of text, which readers take differently; end the line, or put - after "
          + "the | or >, \(place)")
    }
    if isEmpty, !header.contains(where: { ("1"..."9").contains($0) }), isCut(from: start) {
      throw FormatProblem(
        "not YAML: lines of spaces at the start of a block of text are longer than its first line's, \(place)")
    }
  }

  /// The place of `|` or `>`, after a tag, an anchor and comments.
  private func mark(_ block: Range<Int>) -> Int {
    var index = block.lowerBound
    while index + 1 < block.upperBound {
      let isFirst = index == block.lowerBound || Self.isSpace(characters[index - 1])
      if isFirst, characters[index] == "|" || characters[index] == ">" { break }
      index = characters[index] == "#" ? endOfLine(index) ?? block.upperBound : index + 1
    }
    return min(index, block.upperBound)
  }

  /// Whether the text of an empty block was taken for a comment, because blank lines before it have more spaces.
  private func isCut(from start: Int) -> Bool {
    var (longest, index) = (0, start)
    while index < characters.count {
      let indentation = characters[index...].prefix { $0 == " " }.count
      index += indentation
      guard index < characters.count, !Self.endsLine(characters[index]) else {
        longest = max(longest, indentation)
        index += 1
        continue
      }
      return characters[index] == "#" && 1..<max(longest, 1) ~= indentation
    }
    return false
  }

  // MARK: - Characters

  private func place(_ index: Int) -> YAMLPlace {
    let before = characters[..<index]
    let lineStart = before.lastIndex(where: Self.endsLine).map { $0 + 1 } ?? 0
    return YAMLPlace(line: before.count { $0 == "\n" } + 1, column: index - lineStart + 1)
  }

  private func endOfLine(_ index: Int) -> Int? { characters[index...].firstIndex(where: Self.endsLine) }

  private static func endsLine(_ character: Unicode.Scalar) -> Bool { character == "\n" || character == "\r" }

  private static func isSpace(_ character: Unicode.Scalar) -> Bool { " \t\r\n".unicodeScalars.contains(character) }
}
