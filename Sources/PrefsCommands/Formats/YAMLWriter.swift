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

  static func text(_ tree: Value) -> String {
    var writer = YAMLWriter()
    if isBlock(tree) {
      writer.block(tree, indent: 0, isIndented: true)
    } else {
      writer.text = scalar(tree) + "\n"
    }
    return writer.text
  }

  // MARK: - Blocks

  private static func isBlock(_ tree: Value) -> Bool {
    switch tree {
    case .array(let elements): !elements.isEmpty
    case .dictionary(let members): !members.isEmpty
    default: false
    }
  }

  /// - Parameter isIndented: Whether the first line continues the current one.
  private mutating func block(_ tree: Value, indent: Int, isIndented: Bool) {
    let space = String(repeating: " ", count: indent)
    var lead = isIndented ? "" : space
    switch tree {
    case .array(let elements):
      for element in elements {
        text += lead + "-"
        lead = space
        if Self.isBlock(element) {
          text += " "
          block(element, indent: indent + 2, isIndented: true)
        } else {
          text += " " + Self.scalar(element) + "\n"
        }
      }
    case .dictionary(let members):
      for (name, member) in members.sortedByName() {
        let key = Self.string(name)
        text += lead + (key.utf8.count > Self.keyLimit ? "? \(key)\n\(space):" : "\(key):")
        lead = space
        if Self.isBlock(member) {
          text += "\n"
          block(member, indent: indent + 2, isIndented: false)
        } else {
          text += " " + Self.scalar(member) + "\n"
        }
      }
    default: break
    }
  }

  // MARK: - Scalars

  private static func scalar(_ value: Value) -> String {
    switch value {
    case .array: "[]"
    case .dictionary: "{}"
    case .string(let text): string(text)
    case .double(let number) where number.isNaN: ".nan"
    case .double(let number) where number.isInfinite: number < 0 ? "-.inf" : ".inf"
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
    var previous: Unicode.Scalar = " "
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      // YAMLReader counts a possible anchor as one, and refuses files with many.
      case "&" where !previous.properties.isAlphabetic: result += "\\x26"
      case "\0"..<" ", "\u{7f}"..."\u{a0}", "\u{2028}", "\u{2029}", "\u{feff}", "\u{fffe}", "\u{ffff}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
      previous = scalar
    }
    return result + "\""
  }
}
