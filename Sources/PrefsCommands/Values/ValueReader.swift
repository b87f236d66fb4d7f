import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Parses values that a user typed or piped in.
package struct ValueReader {
  package let type: ValueType
  package let encoding: DataEncoding

  package init(type: ValueType, encoding: DataEncoding) {
    (self.type, self.encoding) = (type, encoding)
  }

  /// Parses `bytes`.
  ///
  /// - Throws: ``Failure`` with the status `format`. Its message never contains the value, which may be a secret.
  package func value(_ bytes: [UInt8]) throws -> Value {
    switch type {
    case .data: return .data(try data(bytes))
    case .plist: return try propertyList(Data(AsciiSpace.trimmingText(bytes)))
    default: break
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Failure(.format, "the value is not valid UTF-8. Store other bytes with --type data.")
    }
    switch type {
    case .string: return .string(text)
    case .auto: return try automatic(text)
    default: return try scalarOrComposed(AsciiSpace.trimming(text))
    }
  }

  /// Parses `bytes` as a declared type, including the elements of an array.
  ///
  /// - Throws: The errors of ``value(_:)``.
  package func value(_ bytes: [UInt8], _ type: SettingType) throws -> Value {
    let value = try value(bytes)
    switch type {
    case .array, .dictionary: return type.value(plain: value) ?? value
    default: return value
    }
  }

  // MARK: - Types

  private func scalarOrComposed(_ text: String) throws -> Value {
    switch type {
    case .int: try integer(text)
    case .double: .double(try double(text))
    case .bool: .bool(try bool(text))
    case .date: .date(try date(text))
    case .url: .url(try url(text))
    case .uuid: .uuid(try uuid(text))
    case .json: try json(text)
    case .array, .dict: try composed(text)
    case .string, .auto, .data, .plist: .string(text)
    }
  }

  private func integer(_ text: String) throws -> Value {
    if let number = Int64(text) { return .int(number) }
    if let number = UInt64(text) { return .uint64(number) }
    throw Failure(.format, "not an integer from \(Int64.min) to \(UInt64.max), in decimal digits.")
  }

  private func double(_ text: String) throws -> Double {
    guard let number = Double(text) else {
      throw Failure(.format, "not a number. Examples: 1.5, -2, 6.02e23, inf, nan.")
    }
    guard DecimalText.isInRange(number, text) else {
      throw Failure(.format, "the number is too large or too small for a double.")
    }
    // As an integer of JSON or YAML; a decimal number is the nearest double, as everywhere.
    guard UInt64(text.drop { $0 == "-" || $0 == "+" }).map({ Double(exactly: $0) != nil }) ?? true else {
      throw Failure(.format, "no double is this integer. With .0 at the end it becomes the nearest.")
    }
    return number
  }

  private func bool(_ text: String) throws -> Bool {
    switch text.lowercased() {
    case "true", "yes", "on", "1": return true
    case "false", "no", "off", "0": return false
    default: throw Failure(.format, "not a boolean. Use true or false, yes or no, on or off, 1 or 0.")
    }
  }

  private func date(_ text: String) throws -> Date {
    guard let date = Timestamp.date(text) else {
      throw Failure(
        .format,
        "not a date in RFC 3339. Examples: 2026-01-31T08:30:00Z, 2026-01-31T08:30:00.25+01:00, 2026-01-31.")
    }
    guard Timestamp.exactDate(text) != nil else { throw Failure(.format, "\(Timestamp.lostDigits).") }
    return date
  }

  private func url(_ text: String) throws -> URL {
    guard !text.isEmpty, let url = URL(string: text, encodingInvalidCharacters: false) else {
      throw Failure(.format, "not a URL. Spaces and other reserved characters must be percent-encoded.")
    }
    return url
  }

  private func uuid(_ text: String) throws -> UUID {
    guard let uuid = UUID(uuidString: text) else {
      throw Failure(.format, "not a UUID. Example: 6F9619FF-8B86-D011-B42D-00C04FC964FF.")
    }
    return uuid
  }

  private func data(_ bytes: [UInt8]) throws -> Data {
    switch encoding {
    case .raw: return Data(bytes)
    case .hex:
      guard let decoded = HexText.bytes(String(decoding: bytes, as: UTF8.self)) else {
        throw Failure(.format, "not hexadecimal: use pairs of the digits 0-9 and a-f.")
      }
      return Data(decoded)
    case .base64:
      guard let decoded = Data(base64Encoded: Data(bytes.filter { !AsciiSpace.contains($0) })) else {
        throw Failure(
          .format,
          "not base64. Data on the command line is base64, or hexadecimal with --hex; "
            + "- and --value-file read raw bytes.")
      }
      return decoded
    }
  }

  // MARK: - Arrays, dictionaries, JSON, property lists

  private func json(_ text: String) throws -> Value {
    let value = try parsedJSON(text)
    guard value != .null else { throw Failure(.format, "null is not a value. Use prefs unset to remove a value.") }
    // Kept as text: programs store their Codable types as JSON text, and read it back as such.
    return .json(JSONText.text(value, bigIntegers: .numbers))
  }

  private func composed(_ text: String) throws -> Value {
    let (first, form): (Character, String) =
      type == .array ? ("[", "an array. Example: '[\"a\", \"b\"]'.") : ("{", "a dictionary. Example: '{\"a\": 1}'.")
    let value: Value
    if text.first == "[" {
      value = try parsedJSON(text)
    } else if let parsed = try? JSONReader.value(text) {
      value = parsed
    } else if (try? JSONReader.value(text, roundsNumbers: true)) == nil,
      let parsed = try? PropertyListReader.value(Data(text.utf8))
    {
      value = parsed
    } else if text.first == first {
      // Most people write JSON, so its error message helps most.
      value = try parsedJSON(text)
    } else {
      throw Failure(.format, "not \(form)")
    }
    guard value.kind == (type == .array ? .array : .dictionary) else { throw Failure(.format, "not \(form)") }
    return value
  }

  private func parsedJSON(_ text: String) throws -> Value {
    do {
      return try JSONReader.value(text)
    } catch {
      throw Failure(.format, "\(error.isNumber ? "" : "not JSON: ")\(error.reason), at byte \(error.offset).")
    }
  }

  private func propertyList(_ data: Data) throws -> Value {
    guard let value = try? PropertyListReader.value(data), value != .null else {
      throw Failure(.format, "not a property list (XML, binary or the old text form).")
    }
    return value
  }

  // MARK: - Auto

  /// JSON or a property list if the text begins like one and parses; otherwise the text itself.
  private func automatic(_ text: String) throws -> Value {
    guard let first = text.unicodeScalars.first, "{[(<\"".unicodeScalars.contains(first) else { return .string(text) }
    do {
      return try JSONReader.value(text)
    } catch {
      // Not silently as text: it is JSON.
      guard !error.isNumber else {
        throw Failure(.format, "\(error.reason), at byte \(error.offset). --string stores the whole as text.")
      }
    }
    // A list that begins with a quote would be one of `"a" = "b";`, which is hardly what the user meant to store.
    guard first != "[", first != "\"", let value = try? PropertyListReader.value(Data(text.utf8)) else {
      return .string(text)
    }
    // `(hello)` is an array in the old text form, but usually just a word in parentheses.
    if first == "(", case .array(let elements) = value, elements.count == 1, case .string(let word) = elements[0],
      AsciiSpace.trimming(String(AsciiSpace.trimming(text).dropFirst().dropLast())) == word
    {
      return .string(text)
    }
    return value
  }
}
