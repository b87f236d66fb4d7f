import CYaml
import PrefsCommands

/// The events of libyaml's parser.
///
/// Yams' own tree loses a leading U+FEFF, and compares names by canonical equivalence.
///
/// Unchecked memory: the parser reads from `input`, which lives as long as it.
final class YAMLEvents {
  enum Event {
    case documentStart(version: (major: Int, minor: Int)?)
    case scalar(YAMLScalar, anchor: String?)
    case alias(String)
    case sequenceStart(tag: String?, anchor: String?)
    case mappingStart(tag: String?, anchor: String?)
    /// The end of a sequence or a mapping.
    case end
    case streamEnd
    /// The start of the stream, or the end of a document.
    case other
  }

  private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
  private let input: UnsafeMutableBufferPointer<UInt8>
  private var differences: YAMLDifferences
  /// The place of the last event.
  private(set) var place = YAMLPlace(line: 1, column: 1)

  init(_ text: String) throws {
    differences = try YAMLDifferences(text)
    let bytes = Array(text.utf8)
    input = .allocate(capacity: bytes.count)
    _ = input.initialize(from: bytes)
    // It fails only without memory, as any allocation of Swift's own would.
    guard yaml_parser_initialize(parser) == 1 else { fatalError("libyaml has no memory") }
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
    yaml_parser_set_input_string(parser, input.baseAddress, bytes.count)
  }

  deinit {
    yaml_parser_delete(parser)
    parser.deallocate()
    input.deallocate()
  }

  /// - Throws: ``FormatProblem``, which never quotes the file.
  func next() throws -> Event {
    var event = yaml_event_t()
    guard yaml_parser_parse(parser, &event) == 1 else { throw problem() }
    defer { yaml_event_delete(&event) }
    place = YAMLPlace(event.start_mark)
    try differences.check(event, at: place)
    switch event.type {
    case YAML_DOCUMENT_START_EVENT:
      let version = event.data.document_start.version_directive
      return .documentStart(version: version.map { (Int($0.pointee.major), Int($0.pointee.minor)) })
    case YAML_ALIAS_EVENT: return .alias(Self.text(event.data.alias.anchor) ?? "")
    case YAML_SCALAR_EVENT:
      let scalar = event.data.scalar
      let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
      let isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE
      return .scalar(
        YAMLScalar(text: text, tag: Self.text(scalar.tag), isPlain: isPlain, place: place),
        anchor: Self.text(scalar.anchor))
    case YAML_SEQUENCE_START_EVENT:
      let start = event.data.sequence_start
      return .sequenceStart(tag: Self.text(start.tag), anchor: Self.text(start.anchor))
    case YAML_MAPPING_START_EVENT:
      let start = event.data.mapping_start
      return .mappingStart(tag: Self.text(start.tag), anchor: Self.text(start.anchor))
    case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: return .end
    case YAML_STREAM_END_EVENT, YAML_NO_EVENT: return .streamEnd
    default: return .other
    }
  }

  static func text(_ bytes: UnsafeMutablePointer<yaml_char_t>?) -> String? {
    bytes.map { String(cString: $0) }
  }

  private func problem() -> FormatProblem {
    let reason = parser.pointee.problem.map { String(cString: $0) } ?? "it cannot be read"
    switch parser.pointee.error {
    case YAML_READER_ERROR:
      return FormatProblem("not YAML: a character that YAML does not allow, at byte \(parser.pointee.problem_offset)")
    case YAML_SCANNER_ERROR, YAML_PARSER_ERROR:
      // The parser's message for this one is meant for programmers.
      let shown = reason.hasPrefix("Maximum nesting") ? "it is nested too deeply" : reason
      return FormatProblem("not YAML: \(shown), \(YAMLPlace(parser.pointee.problem_mark))")
    default: return FormatProblem("not YAML: it cannot be read")
    }
  }
}

/// A scalar as it is in the file.
struct YAMLScalar {
  let text: String
  let tag: String?
  /// Whether it has no quotes, and is no block.
  let isPlain: Bool
  let place: YAMLPlace
}

/// A place in a file, from 1.
struct YAMLPlace: CustomStringConvertible {
  let line: Int
  let column: Int

  init(line: Int, column: Int) { (self.line, self.column) = (line, column) }

  init(_ mark: yaml_mark_t) { self.init(line: Int(mark.line) + 1, column: Int(mark.column) + 1) }

  var description: String { "line \(line), column \(column)" }
}
