/// The type of a declared setting, for tools that don't know the Swift type.
///
/// `prefs describe` prints its text form, and `FORMAT.md` describes it as stored: `int`, `array<string>`, `dict<double>`.
package indirect enum SettingType: Hashable, Sendable {
  /// A value of any kind except a secret.
  case any
  case bool, int, double, string, data, date, url, uuid
  /// A list whose elements have one type.
  case array(SettingType)
  /// Values of one type by name.
  case dictionary(SettingType)
  /// A `Codable` type of the program's own; its structure is not declared.
  case json
  /// See ``Secret``.
  case secret

  /// Whether a value is of this type, or can be read as it without loss.
  package func accepts(_ value: Value) -> Bool {
    switch (self, value) {
    case (.any, .secret), (.json, .secret): false
    case (.any, _), (.json, _): true
    case (.bool, .bool), (.int, .int), (.int, .uint64), (.double, .double), (.string, .string): true
    case (.double, .int), (.double, .uint64): Double(value) != nil
    case (.data, .data), (.date, .date), (.url, .url), (.uuid, .uuid), (.secret, .secret): true
    case (.url, .string(let path)): path.isFilePath
    case (.array(let element), .array(let values)): values.allSatisfy(element.accepts)
    case (.dictionary(let element), .dictionary(let values)): values.values.allSatisfy(element.accepts)
    default: false
    }
  }
}

// MARK: - Text

extension SettingType: LosslessStringConvertible {
  private static let names: [(name: String, type: SettingType)] = [
    ("any", .any), ("bool", .bool), ("int", .int), ("double", .double), ("string", .string), ("data", .data),
    ("date", .date), ("url", .url), ("uuid", .uuid), ("array", .array(.any)), ("dict", .dictionary(.any)),
    ("json", .json), ("secret", .secret),
  ]

  /// The maximum depth of nested types: the text may come from a file.
  static let depthLimit = 8

  /// The names of types that are not nested, for sentences.
  static var nameList: String { names.map(\.name).joined(separator: ", ") }

  /// The text form.
  package var description: String {
    if let named = Self.names.first(where: { $0.type == self }) { return named.name }
    return switch self {
    case .array(let element): "array<\(element)>"
    case .dictionary(let element): "dict<\(element)>"
    default: "any"
    }
  }

  /// Parses the text form; nil if it is not valid.
  package init?(_ description: String) {
    self.init(description[...], depth: 0)
  }

  private init?(_ text: Substring, depth: Int) {
    if let named = Self.names.first(where: { $0.name == text }) {
      self = named.type
      return
    }
    guard depth < Self.depthLimit, text.hasSuffix(">"), let bracket = text.firstIndex(of: "<"),
      let element = SettingType(text[text.index(after: bracket)...].dropLast(), depth: depth + 1)
    else { return nil }
    switch text[..<bracket] {
    case "array": self = .array(element)
    case "dict": self = .dictionary(element)
    default: return nil
    }
  }
}
