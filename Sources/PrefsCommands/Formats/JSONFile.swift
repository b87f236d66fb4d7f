import Coffer

/// Settings as a file in JSON (RFC 8259), with names sorted by their UTF-8 bytes, indented by two spaces.
package enum JSONFile {
  package static func tree(_ text: String) throws -> Value {
    do {
      return try JSONReader.value(text)
    } catch {
      throw problem(error, in: text)
    }
  }

  /// The error for a text that is not JSON.
  static func problem(_ problem: JSONReader.Problem, in text: String) -> FormatProblem {
    FormatProblem("not JSON: \(problem.reason), \(TextPlace.words(ofByte: problem.offset, in: text.utf8))")
  }

  package static func text(_ tree: Value) -> String {
    var text = ""
    write(tree, indent: "", to: &text)
    return text + "\n"
  }

  private static func write(_ tree: Value, indent: String, to text: inout String) {
    let inner = indent + "  "
    switch tree {
    case .dictionary(let members) where !members.isEmpty:
      text += "{\n"
      var separator = ""
      for (name, member) in members.sortedByName() {
        text += separator + inner + JSONText.quoted(name) + ": "
        write(member, indent: inner, to: &text)
        separator = ",\n"
      }
      text += "\n\(indent)}"
    case .array(let elements) where !elements.isEmpty:
      text += "[\n"
      var separator = ""
      for element in elements {
        text += separator + inner
        write(element, indent: inner, to: &text)
        separator = ",\n"
      }
      text += "\n\(indent)]"
    default: text += JSONText.text(tree, bigIntegers: .numbers)
    }
  }
}

extension [String: Value] {
  /// The members sorted by the UTF-8 bytes of their names.
  func sortedByName() -> [(key: String, value: Value)] {
    sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }
}
