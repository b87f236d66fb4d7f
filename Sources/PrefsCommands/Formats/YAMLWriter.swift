import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes settings as YAML in block style; text is quoted if a YAML 1.1 or 1.2 parser might not read it as text.
struct YAMLWriter {
  private var text = ""
  /// Parsers find a key without `?` only within 1,024 characters (YAML 1.2, section 7.4).
  private static let keyLimit = 250

  static func text(_ tree: FileTree) -> String {
    var writer = YAMLWriter()
    if isBlock(tree) {
      writer.block(tree, indent: 0, isIndented: true)
    } else {
      writer.text = scalar(tree) + "\n"
    }
    return writer.text
  }

  // MARK: - Blocks

  private static func isBlock(_ tree: FileTree) -> Bool {
    switch tree {
    case .members(let members): !members.isEmpty
    case .value(.array(let elements)): !elements.isEmpty
    case .value(.dictionary(let members)): !members.isEmpty
    case .value: false
    }
  }

  /// - Parameter isIndented: Whether the first line continues the current one.
  private mutating func block(_ tree: FileTree, indent: Int, isIndented: Bool) {
    let space = String(repeating: " ", count: indent)
    var lead = isIndented ? "" : space
    if let members = tree.sortedMembers {
      for member in members {
        let key = Self.string(member.name)
        text += lead + (key.utf8.count > Self.keyLimit ? "? \(key)\n\(space):" : "\(key):")
        lead = space
        if Self.isBlock(member.tree) {
          text += "\n"
          block(member.tree, indent: indent + 2, isIndented: false)
        } else {
          text += " " + Self.scalar(member.tree) + "\n"
        }
      }
    } else if case .value(.array(let elements)) = tree {
      for element in elements.map(FileTree.value) {
        text += lead + "-"
        lead = space
        if Self.isBlock(element) {
          text += " "
          block(element, indent: indent + 2, isIndented: true)
        } else {
          text += " " + Self.scalar(element) + "\n"
        }
      }
    }
  }

  // MARK: - Scalars

  /// The text of a scalar, or of an empty list or dictionary.
  private static func scalar(_ tree: FileTree) -> String {
    guard case .value(let value) = tree else { return "{}" }
    return switch value {
    case .array: "[]"
    case .dictionary: "{}"
    case .string(let text): string(text)
    case .double(let number) where number.isNaN: ".nan"
    case .double(let number) where number.isInfinite: number < 0 ? "-.inf" : ".inf"
    // YAML 1.1 reads no number without a point.
    case .double(let number) where !number.description.contains("."):
      number.description.replacing("e", with: ".0e", maxReplacements: 1)
    case .data(let data): "!!binary \"\(data.base64EncodedString())\""
    default: ValueText.text(value)
    }
  }

  /// Words that some version of YAML does not read as text.
  private static let reserved: Set<String> = [
    "null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan",
  ]

  private static func string(_ text: String) -> String {
    isPlain(text) ? text : quoted(text)
  }

  private static func isPlain(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, first == "_" || first.properties.isAlphabetic && first.isASCII,
      text.utf8.count <= 100, text.utf8.last != UInt8(ascii: " ")
    else { return false }
    let isSafe = text.unicodeScalars.allSatisfy { scalar in
      switch scalar {
      case "A"..."Z", "a"..."z", "0"..."9", " ", "_", "-", ".", "/", "@", "+": true
      default: false
      }
    }
    return isSafe && !reserved.contains(text.lowercased())
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\0"..<" ", "\u{7f}"..."\u{a0}", "\u{2028}", "\u{2029}", "\u{feff}", "\u{fffe}", "\u{ffff}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
