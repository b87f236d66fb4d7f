#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The stored form of declarations, also written by `prefs schema --format json` (`FORMAT.md`, Declarations).

extension Declaration {
  /// The declaration as one JSON object, always in the same form.
  package var json: String { JSONText.text(.dictionary(members), bigIntegers: .numbers) }

  /// Parses a JSON object in the form of ``json``; unknown names are ignored.
  ///
  /// - Throws: `CofferError.malformedSettings`, naming the problem.
  package init(json: String) throws {
    let value: Value
    do {
      value = try JSONReader.value(json)
    } catch {
      throw Self.malformed("not JSON: \(error.reason), at byte \(error.offset)")
    }
    try self.init(value)
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
    return members
  }

  /// Parses a dictionary in the form of `members`.
  ///
  /// - Throws: `CofferError.malformedSettings`.
  package init(_ value: Value) throws {
    guard case .dictionary(let members) = value else { throw Self.malformed("it is not an object") }
    func text(_ name: String) throws -> String? {
      switch members[name] {
      case nil, .null: nil
      case .string(let text): text
      default: throw Self.malformed("\"\(name)\" is not text")
      }
    }
    guard let name = try text("name") else { throw Self.malformed("it has no name") }
    func malformed(_ reason: String) -> CofferError { Self.malformed("setting \"\(name)\": \(reason)") }
    guard let typeName = try text("type"), let type = SettingType(typeName) else {
      throw malformed("its type is missing, or unknown")
    }
    self.init(name, in: try text("collection") ?? "", type: type)
    if let plain = members["default"], plain != .null {
      guard type != .secret else { throw malformed("a secret cannot have a default") }
      guard let value = type.value(plain: plain) else { throw malformed("its default is not of its type") }
      defaultValue = value
    }
    if let limits = members["limits"] {
      guard case .array(let limits) = limits else { throw malformed("its limits are not a list") }
      self.limits = try limits.map { limit in
        guard let limit = SettingLimit(limit, of: type) else { throw malformed("a limit is unknown") }
        return limit
      }
    }
    summary = try text("summary") ?? ""
    if let effect = try text("effect") {
      guard let effect = SettingEffect(rawValue: effect) else { throw malformed("its effect is unknown") }
      self.effect = effect
    }
    since = try text("since")
    deprecated = try text("deprecated")
    isShared = members["shared"] == .bool(true)
    try check()
  }

  /// - Throws: `CofferError.malformedSettings` when a limit is invalid, the default violates one, or the type is nested too
  ///   deeply to be read again.
  func check() throws {
    let name = KeyText.of(name, in: collection)
    guard SettingType("\(type)") != nil else {
      throw Self.malformed("setting \"\(name)\": its type is nested more than 8 deep")
    }
    for limit in limits {
      if let problem = limit.problem { throw Self.malformed("setting \"\(name)\": \(problem)") }
    }
    if let defaultValue, let problem = problem(of: defaultValue) {
      throw Self.malformed("setting \"\(name)\": its default must be \(problem)")
    }
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

  fileprivate init?(_ value: Value, of type: SettingType) {
    guard case .dictionary(let members) = value else { return nil }
    func count(_ name: String) -> Int?? {
      switch members[name] {
      case nil: .some(nil)
      case .int(let number): Int(exactly: number)
      default: nil
      }
    }
    func bound(_ name: String) -> Value?? {
      guard let plain = members[name] else { return .some(nil) }
      return type.value(plain: plain).map(Optional.some)
    }
    if case .string(let pattern) = members["pattern"] {
      self = .pattern(pattern)
    } else if case .string(let words) = members["words"] {
      self = .described(words)
    } else if case .array(let choices) = members["choices"] {
      let values = choices.compactMap(type.value(plain:))
      guard values.count == choices.count else { return nil }
      self = .choices(values)
    } else if members["minimumCount"] != nil || members["maximumCount"] != nil {
      guard let minimum = count("minimumCount"), let maximum = count("maximumCount") else { return nil }
      self = .count(minimum: minimum ?? 0, maximum: maximum)
    } else if members["minimum"] != nil || members["maximum"] != nil {
      guard let minimum = bound("minimum"), let maximum = bound("maximum") else { return nil }
      self = .range(minimum: minimum, maximum: maximum)
    } else {
      return nil
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
    case (.date, .string(let text)): return Timestamp.date(text).map(Value.date)
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

/// The name of a setting in sentences, as in the shell.
enum KeyText {
  static func of(_ key: String, in collection: String) -> String { collection.isEmpty ? key : "\(collection)/\(key)" }
}
