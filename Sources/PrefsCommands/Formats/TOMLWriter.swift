import Coffer

/// Writes settings as TOML 1.0: a table per collection, and one value per line.
enum TOMLWriter {
  static func text(_ tree: FileTree) -> String {
    (tree.sortedMembers ?? []).map { line($0.name, $0.tree) }.joined()
  }

  /// The file of several collections, each in its own table.
  static func text(ofCollections collections: FileTree) -> String {
    let tables = (collections.sortedMembers ?? []).map { collection in
      "[\(key(collection.name))]\n" + text(collection.tree)
    }
    return tables.joined(separator: "\n")
  }

  private static func line(_ name: String, _ tree: FileTree) -> String { "\(key(name)) = \(value(tree))\n" }

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

  private static func value(_ tree: FileTree) -> String {
    if let members = tree.sortedMembers {
      return members.isEmpty
        ? "{}" : "{ " + members.map { "\(key($0.name)) = \(value($0.tree))" }.joined(separator: ", ") + " }"
    }
    switch tree {
    case .value(.string(let text)): return JSONText.quoted(text)
    case .value(.array(let elements)):
      return "[" + elements.map { value(.value($0)) }.joined(separator: ", ") + "]"
    case .value(let scalar): return ValueText.text(scalar)
    case .members: return ""
    }
  }
}
