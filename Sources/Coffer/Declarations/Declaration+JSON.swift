#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The stored form of declarations, also written by `prefs schema --format json` (`FORMAT.md`, Declarations).

extension Declaration {
  /// The declaration as one JSON object, always in the same form.
  package var json: String { JSONText.text(.dictionary(members), bigIntegers: .numbers) }

  /// The same with integers as strings that a double cannot hold, for JavaScript.
  package var jsonForJavaScript: String { JSONText.text(.dictionary(members), bigIntegers: .strings) }

  /// Parses a JSON object in the form of ``json``; unknown names are ignored.
  ///
  /// - Throws: `CofferError.malformedSettings`, naming the problem.
  package init(json: String) throws {
    guard json.utf8.count <= DeclarationReader.byteLimit else {
      throw Self.malformed("it is longer than \(DeclarationReader.byteLimit) bytes")
    }
    self = try Self.read(Self.value(json))
  }

  private static func value(_ json: String) throws -> Value {
    do {
      return try JSONReader.value(json)
    } catch {
      throw malformed("not JSON: \(error.reason), at byte \(error.offset)")
    }
  }

  private static func read(_ value: Value) throws -> Declaration {
    let (declaration, problems) = DeclarationReader.read(value, isStrict: false)
    guard let declaration else {
      let subject = DeclarationReader.name(of: value).map { "setting \"\($0)\": " } ?? ""
      throw malformed(subject + problems.map(\.reason).joined(separator: "; "))
    }
    return declaration
  }

  /// Parses a list of such objects.
  ///
  /// - Throws: As `init(json:)`.
  package static func list(json: String) throws -> [Declaration] {
    guard case .array(let values) = try value(json) else { throw malformed("not a list") }
    return try values.map(read)
  }

  private static func malformed(_ reason: String) -> CofferError {
    .malformedSettings(source: "a declaration", reason: reason)
  }

  private var members: [String: Value] {
    var members: [String: Value] = [
      "name": .string(name), "collection": .string(collection), "type": .string(type.description),
    ]
    if let defaultValue { members["default"] = type.plain(defaultValue) }
    if !limits.isEmpty { members["limits"] = .array(limits.map { $0.value(of: type) }) }
    if !summary.isEmpty { members["summary"] = .string(summary) }
    if effect != .immediate { members["effect"] = .string(effect.rawValue) }
    if let since { members["since"] = .string(since) }
    if let deprecated { members["deprecated"] = .string(deprecated) }
    if isShared { members["shared"] = .bool(true) }
    if !formerNames.isEmpty {
      members["formerly"] = .array(
        formerNames.map { former in
          var members = former.place.members
          if former.isConverted { members["converted"] = .bool(true) }
          return .dictionary(members)
        })
    }
    if let renamed { members["renamed"] = .dictionary(renamed.members) }
    return members
  }

  /// - Throws: `CofferError.malformedSettings` unless the declaration could be read again: when a limit is invalid, the default
  ///   violates one, or the type is nested too deeply.
  func check() throws { _ = try Declaration(json: json) }
}

extension SettingPlace {
  fileprivate var members: [String: Value] {
    ["name": .string(key.string), "collection": .string(collection.string)]
  }
}

extension SettingLimit {
  fileprivate func value(of type: SettingType) -> Value {
    switch self {
    case .range(let minimum, let maximum):
      var members: [String: Value] = [:]
      if let minimum { members["minimum"] = type.plain(minimum) }
      if let maximum { members["maximum"] = type.plain(maximum) }
      return .dictionary(members)
    case .choices(let choices): return .dictionary(["choices": .array(choices.map(type.plain))])
    case .count(let minimum, let maximum):
      var members: [String: Value] = ["minimumCount": .int(Int64(minimum))]
      if let maximum { members["maximumCount"] = .int(Int64(maximum)) }
      return .dictionary(members)
    case .pattern(let pattern): return .dictionary(["pattern": .string(pattern)])
    case .described(let words): return .dictionary(["words": .string(words)])
    }
  }
}

// MARK: - Values in JSON

extension SettingType {
  /// A value of this type in the form it has in JSON: dates, data and similar types as text.
  package func plain(_ value: Value) -> Value {
    if case .json(let text) = value { return (try? JSONReader.value(text)) ?? value }
    return value
  }

  /// The value of this type for a JSON value, or nil.
  package func value(plain: Value) -> Value? {
    switch (self, plain) {
    case (.data, .string(let text)): return Data(base64Encoded: text).map(Value.data)
    case (.date, .string(let text)): return Timestamp.exactDate(text).map(Value.date)
    case (.url, .string(let text)):
      return URL(string: text, encodingInvalidCharacters: false).map(Value.url)
    case (.uuid, .string(let text)): return UUID(uuidString: text).map(Value.uuid)
    case (.double, .string(let text)): return Double(text).map(Value.double)
    case (.double, .int(let number)): return Double(exactly: number).map(Value.double)
    case (.json, _): return .json(JSONText.text(plain, bigIntegers: .numbers))
    case (.array(let element), .array(let values)):
      let elements = values.compactMap(element.value(plain:))
      return elements.count == values.count ? .array(elements) : nil
    case (.dictionary(let element), .dictionary(let values)):
      let elements = values.compactMapValues(element.value(plain:))
      return elements.count == values.count ? .dictionary(elements) : nil
    default: return accepts(plain) ? plain : nil
    }
  }
}
