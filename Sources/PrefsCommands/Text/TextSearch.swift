import Coffer

/// Searches texts for a text, ignoring case unless it contains a capital.
struct TextSearch {
  private let wanted: [UInt8]
  private let isExact: Bool

  init(_ text: String) {
    isExact = text.contains(where: \.isUppercase)
    wanted = Array((isExact ? text : text.lowercased()).utf8)
  }

  func matches(_ text: String) -> Bool {
    Self.contains(Array((isExact ? text : text.lowercased()).utf8), wanted)
  }

  /// Whether text in `value`, including dictionary keys, matches; never that of a secret.
  func matches(_ value: Value) -> Bool {
    switch value {
    case .string(let text), .json(let text): matches(text)
    case .url, .uuid: matches(ValueText.text(value))
    case .array(let elements): elements.contains(where: matches)
    case .dictionary(let members): members.contains { matches($0.key) || matches($0.value) }
    case .null, .bool, .int, .uint64, .double, .data, .date, .secret: false
    }
  }

  private static func contains(_ text: [UInt8], _ wanted: [UInt8]) -> Bool {
    guard let first = wanted.first else { return true }
    guard text.count >= wanted.count else { return false }
    return (0...(text.count - wanted.count)).contains { start in
      text[start] == first && text[start..<start + wanted.count].elementsEqual(wanted)
    }
  }
}

extension Value.Kind {
  /// Whether values of this kind may contain searchable text.
  var holdsText: Bool {
    switch self {
    case .string, .json, .url, .uuid, .array, .dictionary: true
    case .null, .bool, .int, .uint64, .double, .data, .date, .secret, .sealed: false
    }
  }
}
