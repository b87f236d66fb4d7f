import Coffer

/// Settings as a file in JSON (RFC 8259), with names sorted by their UTF-8 bytes, indented by two spaces.
package enum JSONFile {
  package static func tree(_ text: String) throws -> FileTree {
    do {
      return try JSONReader.fileTree(text)
    } catch {
      throw problem(error, in: text)
    }
  }

  /// The error for a text that is not JSON.
  static func problem(_ problem: JSONReader.Problem, in text: String) -> FormatProblem {
    let what = problem.isNumber ? "" : "not JSON: "
    return FormatProblem("\(what)\(problem.reason), \(TextPlace.words(ofByte: problem.offset, in: text.utf8))")
  }

  /// - Throws: ``FormatProblem``.
  package static func value(_ text: String) throws -> Value {
    guard let value = try tree(text).asValue else {
      throw FormatProblem("two names in one value differ only in their Unicode normalization")
    }
    return value
  }

  package static func text(_ tree: FileTree) -> String {
    var text = ""
    write(tree, indent: "", to: &text)
    return text + "\n"
  }

  private static func write(_ tree: FileTree, indent: String, to text: inout String) {
    let inner = indent + "  "
    if let members = tree.sortedMembers, !members.isEmpty {
      text += "{\n"
      var separator = ""
      for member in members {
        text += separator + inner + JSONText.quoted(member.name) + ": "
        write(member.tree, indent: inner, to: &text)
        separator = ",\n"
      }
      text += "\n\(indent)}"
    } else if case .value(.array(let elements)) = tree, !elements.isEmpty {
      text += "[\n"
      var separator = ""
      for element in elements {
        text += separator + inner
        write(.value(element), indent: inner, to: &text)
        separator = ",\n"
      }
      text += "\n\(indent)]"
    } else {
      text += JSONText.text(tree.asValue ?? .dictionary([:]), bigIntegers: .numbers)
    }
  }
}
