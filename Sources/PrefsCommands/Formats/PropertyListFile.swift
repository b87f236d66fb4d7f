import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Settings as a property list: XML for display, else binary, like `defaults export`.
enum PropertyListFile {
  static func tree(_ bytes: [UInt8]) throws -> FileTree {
    do {
      return try PropertyListReader.fileTree(Data(bytes))
    } catch {
      throw FormatProblem("not a property list: \(error.reason)")
    }
  }

  /// - Throws: ``FormatProblem``.
  static func bytes(_ tree: FileTree, isBinary: Bool) throws -> [UInt8] {
    do {
      return try isBinary ? BinaryPropertyListWriter.bytes(tree) : Array(XMLPropertyListWriter.text(tree).utf8)
    } catch {
      throw FormatProblem(error.reason)
    }
  }

  /// - Throws: ``FormatProblem`` for a value that the binary form supports but XML does not.
  static func check(_ tree: Value) throws {
    switch tree {
    case .string(let text): try check(text)
    case .date(let date):
      let seconds = date.timeIntervalSinceReferenceDate
      guard seconds == seconds.rounded(), XMLPropertyList.holds(date) else {
        throw FormatProblem(
          "XML can hold only whole seconds from 15 October 1582 to the year 9999; the binary form, from -o, can hold all"
        )
      }
    case .array(let elements): try elements.forEach(check)
    case .dictionary(let members):
      for (name, member) in members {
        try check(name)
        try check(member)
      }
    default: break
    }
  }

  private static func check(_ text: String) throws {
    guard XMLPropertyList.holds(text) else {
      throw FormatProblem("XML cannot hold control characters; the binary form, which -o writes, can")
    }
  }
}
