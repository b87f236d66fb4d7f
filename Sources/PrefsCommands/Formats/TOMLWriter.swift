import Coffer

/// Writes settings as TOML 1.0: a table per collection, and one value per line.
enum TOMLWriter {
  static func text(_ tree: [String: Value]) -> String {
    tree.sortedByName().map { line($0.key, $0.value) }.joined()
  }

  /// The file of several collections, each in its own table.
  static func text(ofCollections collections: [String: Value]) -> String {
    let tables = collections.sortedByName().map { name, settings in
      guard case .dictionary(let members) = settings else { return line(name, settings) }
      return "[\(key(name))]\n" + text(members)
    }
    return tables.joined(separator: "\n")
  }

  private static func line(_ name: String, _ value: Value) -> String { "\(key(name)) = \(Self.value(value))\n" }

  private static func key(_ name: String) -> String {
    let isBare =
      !name.isEmpty
      && name.unicodeScalars.allSatisfy { scalar in
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9", "_", "-": true
        default: false
        }
      }
    // JSON's escapes are those of a TOML basic string.
    return isBare ? name : JSONText.quoted(name)
  }

  private static func value(_ value: Value) -> String {
    switch value {
    case .string(let text): JSONText.quoted(text)
    case .array(let elements): "[" + elements.map(Self.value).joined(separator: ", ") + "]"
    case .dictionary(let members) where members.isEmpty: "{}"
    case .dictionary(let members):
      "{ " + members.sortedByName().map { "\(key($0.key)) = \(Self.value($0.value))" }.joined(separator: ", ") + " }"
    default: ValueText.text(value)
    }
  }
}
