#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values in files of JSON and other formats that have no type for them: a dictionary with one name, which is their type.
///
/// `prefs export` writes such files, `{"$date": "2026-01-31T08:30:00.250Z"}`, and everything that reads settings from files takes them.
package enum MarkedValue {
  /// The type of a wrapped value.
  package enum Mark: String {
    case null = "$null"
    case integer = "$int"
    case double = "$double"
    case string = "$string"
    case data = "$data"
    case date = "$date"
    case url = "$url"
    case uuid = "$uuid"
    case json = "$json"
    case secret = "$secret"
    case dictionary = "$dict"
  }

  /// Decodes a tree.
  ///
  /// - Throws: `ValueCodingError`.
  package static func value(_ tree: Value) throws -> Value { try unwrapped(tree, isWhole: true) }

  private static func unwrapped(_ tree: Value, isWhole: Bool = false) throws -> Value {
    switch tree {
    case .array(let elements): return .array(try elements.map { try unwrapped($0) })
    case .dictionary(let members):
      guard members.count == 1, let (name, content) = members.first, let mark = Mark(rawValue: name) else {
        return .dictionary(try members.mapValues { try unwrapped($0) })
      }
      if mark == .secret, !isWhole { throw ValueCodingError(reason: "a secret cannot be part of another value") }
      return try value(of: mark, content)
    default: return tree
    }
  }

  private static func value(of mark: Mark, _ content: Value) throws -> Value {
    switch (mark, content) {
    case (.null, .bool(true)): return .null
    case (.integer, .string(let text)):
      if let number = Int64(text) { return .int(number) }
      if let number = UInt64(text) { return .uint64(number) }
    case (.double, .string(let text)):
      if let number = special(text) { return .double(number) }
    case (.string, .string): return content
    case (.data, .string(let text)):
      if let data = Data(base64Encoded: text) { return .data(data) }
    case (.date, .string(let text)):
      if let date = try date(text) { return date }
    case (.date, .double(let seconds)): return .date(Date(timeIntervalSinceReferenceDate: seconds))
    // JavaScript writes 5.0 as 5.
    case (.date, .int(let seconds)): return .date(Date(timeIntervalSinceReferenceDate: Double(seconds)))
    case (.date, .dictionary):
      if case .double(let seconds) = try unwrapped(content) {
        return .date(Date(timeIntervalSinceReferenceDate: seconds))
      }
    case (.url, .string(let text)):
      if let url = url(text) { return .url(url) }
    case (.url, .array(let parts)):
      if case .string(let text)? = parts.first, case .string(let base)? = parts.last, parts.count == 2,
        let baseURL = url(base), let url = URL(string: text, relativeTo: baseURL), url.relativeString == text
      {
        return .url(url)
      }
    case (.uuid, .string(let text)):
      if let uuid = UUID(uuidString: text) { return .uuid(uuid) }
    case (.json, .string(let text)):
      if (try? JSONReader.value(text, roundsNumbers: true)) != nil { return .json(text) }
    case (.json, _): return .json(JSONText.text(try unwrapped(content), bigIntegers: .numbers))
    case (.secret, .string(let text)) where !text.isEmpty: return .secret(Secret(text))
    case (.secret, .dictionary):
      if case .data(let data) = try unwrapped(content), !data.isEmpty {
        return .secret(data.withUnsafeBytes(Secret.init(copying:)))
      }
    case (.dictionary, .dictionary(let members)): return .dictionary(try members.mapValues { try unwrapped($0) })
    default: break
    }
    throw ValueCodingError(
      reason:
        "the value of \(mark.rawValue) is not one of that type\(mark == .secret ? ", or is empty" : ""); correct it, or wrap a dictionary with this name in $dict"
    )
  }

  /// The date that a text represents; nil for another text.
  ///
  /// - Throws: `ValueCodingError` for one with more digits than a date holds.
  package static func date(_ text: String) throws -> Value? {
    if let date = Timestamp.exactDate(text) { return .date(date) }
    guard Timestamp.date(text) == nil else { throw ValueCodingError(reason: Timestamp.lostDigits) }
    return nil
  }

  /// Nil for what Foundation would change, such as a space.
  private static func url(_ text: String) -> URL? {
    guard let url = URL(string: text, encodingInvalidCharacters: false), url.relativeString == text else { return nil }
    return url
  }

  private static func special(_ text: String) -> Double? {
    if ["nan", "inf", "-inf"].contains(text) { return Double(text) }
    guard text.hasPrefix("0x"), let bits = UInt64(text.dropFirst(2), radix: 16) else { return nil }
    let number = Double(bitPattern: bits)
    return number.isNaN ? number : nil
  }
}
