#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values as one line of JSON, always in the same form: names sorted by their UTF-8 bytes, no spaces.
package enum JSONText {
  /// How to write integers that a reader with only floating-point numbers would round.
  package enum BigIntegers {
    /// As numbers, exactly: for text that this library reads back.
    case numbers
    /// As strings beyond 2^53: for other programs.
    case strings
  }

  /// Floating-point numbers represent all integers up to this one.
  private static let exactLimit: UInt64 = 1 << 53

  /// `value` as JSON.
  ///
  /// Data, dates, URLs and UUIDs are strings, as are non-finite numbers. A secret is written as its length.
  package static func text(_ value: Value, bigIntegers: BigIntegers) -> String {
    var result = ""
    write(value, bigIntegers, to: &result)
    return result
  }

  /// `text` as a JSON string with its quotes.
  package static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{8}": result += "\\b"
      case "\u{c}": result += "\\f"
      case "\0"..<" ", "\u{7f}"..<"\u{a0}", "\u{2028}", "\u{2029}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// An object whose members are JSON already, in this order.
  package static func object(_ members: [(name: String, json: String)]) -> String {
    "{" + members.map { quoted($0.name) + ":" + $0.json }.joined(separator: ",") + "}"
  }

  /// An array whose elements are JSON already.
  package static func array(_ elements: [String]) -> String {
    "[" + elements.joined(separator: ",") + "]"
  }

  /// `value` as JSON that `JSONReader` parses back to the same value, bit for bit; nil if there is no such text.
  package static func lossless(_ value: Value) -> String? {
    let text = text(value, bigIntegers: .numbers)
    guard let read = try? JSONReader.value(text).stored, read == (try? value.stored) else { return nil }
    return text
  }

  // MARK: - Writing

  private static func write(_ value: Value, _ bigIntegers: BigIntegers, to result: inout String) {
    switch value {
    case .null: result += "null"
    case .bool(let bool): result += bool ? "true" : "false"
    case .int(let number):
      result += integer("\(number)", magnitude: number.magnitude, bigIntegers)
    case .uint64(let number):
      result += integer("\(number)", magnitude: number, bigIntegers)
    case .double(let number):
      // Swift's description is the shortest text that reads back equal, and is valid JSON.
      result += number.isFinite ? number.description : quoted(number.description)
    case .array(let elements):
      result += "["
      for (index, element) in elements.enumerated() {
        if index > 0 { result += "," }
        write(element, bigIntegers, to: &result)
      }
      result += "]"
    case .dictionary(let members):
      result += "{"
      let names = members.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      for (index, name) in names.enumerated() {
        if index > 0 { result += "," }
        result += quoted(name) + ":"
        write(members[name] ?? .null, bigIntegers, to: &result)
      }
      result += "}"
    case .json(let text):
      if let parsed = try? JSONReader.value(text) {
        write(parsed, bigIntegers, to: &result)
      } else if (try? JSONReader.value(text, roundsNumbers: true)) != nil {
        // As it is, so that no number is rounded, on one line: a string in it has no line breaks.
        result += String(decoding: text.utf8.filter { $0 >= 0x20 }, as: UTF8.self)
      } else {
        result += quoted(text)
      }
    case .string, .data, .date, .url, .uuid, .secret:
      result += quoted(ValueText.scalar(value) ?? "")
    }
  }

  private static func integer(_ text: String, magnitude: UInt64, _ bigIntegers: BigIntegers) -> String {
    bigIntegers == .strings && magnitude > exactLimit ? quoted(text) : text
  }
}
