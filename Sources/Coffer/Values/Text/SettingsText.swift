#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads settings from text: arguments, variables, files.
enum SettingsText {
  /// JSON or a property list if `text` begins like one and is one; otherwise the text itself.
  static func value(_ text: String) -> Value {
    guard let first = text.unicodeScalars.first, "{[(<\"".unicodeScalars.contains(first) else { return .string(text) }
    return structured(text) ?? .string(text)
  }

  /// JSON or a property list; nil if `text` is neither, or null.
  static func structured(_ text: String) -> Value? {
    let value = (try? JSONReader.value(text)) ?? (try? PropertyListReader.value(Data(text.utf8)))
    return value == .null ? nil : value
  }

  /// `text` parsed as an object of a type of the program; nil if it is not one.
  static func object<Object: Decodable>(
    in text: String, as type: Object.Type, _ key: String, in collection: String
  ) -> Object? {
    // Only if it is requested: each secret takes locked memory.
    if type == Secret.self || type == Secret?.self { return Secret(text) as? Object }
    for reading in readings(of: text) {
      if let object = try? reading.decoded(as: type, key, in: collection) { return object }
    }
    return nil
  }

  /// Possible readings of `text`, besides ``value(_:)``.
  static func readings(of text: String) -> [Value] {
    let numbers = [Int64(text).map(Value.int), UInt64(text).map(Value.uint64), Double(text).map(Value.double)]
    let names = [
      Timestamp.date(text).map(Value.date), UUID(uuidString: text).map(Value.uuid),
      URL(string: text, encodingInvalidCharacters: false).map(Value.url),
    ]
    let data = Data(base64Encoded: text).map(Value.data)
    return ([.string(text)] + numbers + [truth(text)] + names + [structured(text), data]).compactMap { $0 }
  }

  private static func truth(_ text: String) -> Value? {
    switch text.lowercased() {
    case "true", "yes", "on", "1": .bool(true)
    case "false", "no", "off", "0": .bool(false)
    default: nil
    }
  }
}
