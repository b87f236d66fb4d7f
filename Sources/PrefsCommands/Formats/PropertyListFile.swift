import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Settings as a property list: XML where people read it, else binary, as `defaults export` does.
enum PropertyListFile {
  static func tree(_ bytes: [UInt8]) throws -> Value {
    do {
      return try PropertyListReader.value(Data(bytes))
    } catch {
      throw FormatProblem("not a property list: \(error.reason)")
    }
  }

  static func bytes(_ tree: [String: Value], isBinary: Bool) throws -> [UInt8] {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = isBinary ? .binary : .xml
    return Array(try encoder.encode(tree))
  }

  /// - Throws: ``FormatProblem`` where XML cannot hold what the binary form can.
  static func check(_ tree: Value) throws {
    switch tree {
    case .string(let text): try check(text)
    case .date(let date):
      // As it is stored: counted from 1970, a small fraction would be rounded away unseen.
      let seconds = date.timeIntervalSinceReferenceDate
      // Before 15 October 1582 Foundation's encoder counts days as Julius Caesar did, and other readers do not.
      guard seconds == seconds.rounded(), (-13_197_600_000..<252_423_993_600).contains(seconds) else {
        throw FormatProblem(
          "XML has whole seconds from 15 October 1582 to the year 9999; the binary form, which -o writes, has all")
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
    // XML 1.0, production 2; and a carriage return is read as a newline, section 2.11.
    let isWritable = text.unicodeScalars.allSatisfy { scalar in
      switch scalar {
      case "\t", "\n": true
      case "\0"..<" ", "\u{fffe}", "\u{ffff}": false
      default: true
      }
    }
    guard isWritable else {
      throw FormatProblem("XML has no control characters; the binary form, which -o writes, has")
    }
  }
}
