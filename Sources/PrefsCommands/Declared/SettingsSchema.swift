import Coffer

/// A JSON Schema (draft 2020-12) of the output of `prefs export --format json`, from the declarations.
struct SettingsSchema {
  /// The collections whose values an export without `--reveal` hides.
  let sealedCollections: Set<ByteString>

  private static let dialect = "https://json-schema.org/draft/2020-12/schema"

  // MARK: - Documents

  /// The schema of an export of one collection.
  func document(of settings: [DeclaredKeys.Setting], in collection: String) -> Value {
    .dictionary(object(settings, in: collection).merging(["$schema": .string(Self.dialect)]) { $1 })
  }

  /// The schema of an export of all collections.
  func document(of settings: [DeclaredKeys.Setting]) -> Value {
    var collections: [String: [DeclaredKeys.Setting]] = [:]
    for setting in settings { collections[setting.declaration.collection, default: []].append(setting) }
    let properties = collections.map { name, settings in (name, Value.dictionary(object(settings, in: name))) }
    return .dictionary([
      "$schema": .string(Self.dialect), "type": .string("object"),
      "properties": .dictionary(Dictionary(properties) { $1 }),
    ])
  }

  private func object(_ settings: [DeclaredKeys.Setting], in collection: String) -> [String: Value] {
    let isSealed = sealedCollections.contains(ByteString(collection))
    let properties = settings.map { setting in
      (setting.declaration.name, property(setting.declaration, isSealed: isSealed))
    }
    return ["type": .string("object"), "properties": .dictionary(Dictionary(properties) { $1 })]
  }

  private func property(_ declaration: Declaration, isSealed: Bool) -> Value {
    var members = Self.schema(of: declaration.type, declaration.limits)
    if isSealed { members = ["anyOf": .array([.dictionary(members), Self.constant(Redaction.sealed)])] }
    let words = declaration.limits.filter { !Self.isExact($0, of: declaration.type) }.map(\.words)
    let description = ([declaration.summary] + words).filter { !$0.isEmpty }
    if !description.isEmpty { members["description"] = .string(description.joined(separator: "; ")) }
    if let value = declaration.defaultValue.flatMap(Self.exported) { members["default"] = value }
    if declaration.deprecated != nil { members["deprecated"] = .bool(true) }
    return .dictionary(members)
  }

  /// Whether JSON Schema can express a limit exactly: it cannot order texts and dates, or count bytes.
  private static func isExact(_ limit: SettingLimit, of type: SettingType) -> Bool {
    switch limit {
    case .described: false
    case .range: type == .int || type == .double
    case .count: type != .data && type != .secret
    default: true
    }
  }

  // MARK: - Types

  private static func schema(of type: SettingType, _ limits: [SettingLimit]) -> [String: Value] {
    for case .choices(let choices) in limits { return ["enum": .array(choices.compactMap(exported))] }
    switch type {
    case .any, .json: return [:]
    case .bool: return ["type": .string("boolean")]
    case .int: return ["type": .string("integer")].merging(bounds(limits)) { $1 }
    case .double: return double(limits)
    case .string: return string(limits)
    case .data: return wrapped("$data", base64(limits))
    case .date: return wrapped("$date", anyOf([["type": .string("string")], double([])]))
    case .url:
      let text: [String: Value] = ["type": .string("string")]
      let parts: [String: Value] = [
        "type": .string("array"), "items": .dictionary(text), "minItems": .int(2), "maxItems": .int(2),
      ]
      return wrapped("$url", anyOf([text, parts]))
    case .uuid: return wrapped("$uuid", ["type": .string("string"), "format": .string("uuid")])
    case .array(let element):
      return ["type": .string("array"), "items": .dictionary(schema(of: element, []))]
        .merging(counts(limits, "Items")) { $1 }
    case .dictionary(let element):
      let members = ["type": .string("object"), "additionalProperties": .dictionary(schema(of: element, []))]
        .merging(counts(limits, "Properties")) { $1 }
      return anyOf([members, wrapped(PortableValue.Mark.dictionary.rawValue, members)])
    case .secret:
      let shown = pattern("<secret: [0-9]+ bytes>")
      var text: [String: Value] = ["type": .string("string")]
      // A character is one to four bytes.
      for case .count(let minimum, let maximum) in limits {
        text["minLength"] = .int(Int64((minimum + 3) / 4))
        if let maximum { text["maxLength"] = .int(Int64(maximum)) }
      }
      return anyOf([shown, wrapped("$secret", anyOf([text, wrapped("$data", base64(limits))]))])
    }
  }

  private static func double(_ limits: [SettingLimit]) -> [String: Value] {
    var special = ["nan", "inf", "-inf"].map(Value.string)
    for case .range(let minimum, let maximum) in limits {
      special.removeAll { text in
        text == .string("nan") || text == .string("inf") && maximum != nil || text == .string("-inf") && minimum != nil
      }
    }
    let number = ["type": Value.string("number")].merging(bounds(limits)) { $1 }
    var forms = [number]
    if !special.isEmpty { forms.append(wrapped("$double", ["enum": .array(special)])) }
    // The bits of a NaN other than the usual one.
    if special.count == 3 { forms.append(wrapped("$double", pattern("0x[0-9a-f]+"))) }
    return anyOf(forms)
  }

  private static func string(_ limits: [SettingLimit]) -> [String: Value] {
    var text = ["type": Value.string("string")].merging(counts(limits, "Length")) { $1 }
    let patterns = limits.compactMap { limit -> Value? in
      if case .pattern(let expression) = limit { .dictionary(pattern(expression)) } else { nil }
    }
    if !patterns.isEmpty { text["allOf"] = .array(patterns) }
    // Text that looks like the placeholder of a secret.
    return anyOf([text, wrapped("$string", text)])
  }

  /// Three bytes are four characters.
  private static func base64(_ limits: [SettingLimit]) -> [String: Value] {
    var text: [String: Value] = ["type": .string("string"), "contentEncoding": .string("base64")]
    for case .count(let minimum, let maximum) in limits {
      text["minLength"] = .int(Int64(minimum / 3 + (minimum % 3 > 0 ? 1 : 0)) * 4)
      if let maximum { text["maxLength"] = .int(Int64(maximum / 3 + (maximum % 3 > 0 ? 1 : 0)) * 4) }
    }
    return text
  }

  // MARK: - Parts

  private static func bounds(_ limits: [SettingLimit]) -> [String: Value] {
    var members: [String: Value] = [:]
    for case .range(let minimum, let maximum) in limits {
      if let minimum = minimum.flatMap(exported) { members["minimum"] = minimum }
      if let maximum = maximum.flatMap(exported) { members["maximum"] = maximum }
    }
    return members
  }

  private static func counts(_ limits: [SettingLimit], _ what: String) -> [String: Value] {
    var members: [String: Value] = [:]
    for case .count(let minimum, let maximum) in limits {
      members["min" + what] = .int(Int64(minimum))
      if let maximum { members["max" + what] = .int(Int64(maximum)) }
    }
    return members
  }

  private static func pattern(_ expression: String) -> [String: Value] {
    ["type": .string("string"), "pattern": .string("^(?:\(expression))$")]
  }

  private static func constant(_ text: String) -> Value { .dictionary(["const": .string(text)]) }

  private static func wrapped(_ mark: String, _ content: [String: Value]) -> [String: Value] {
    [
      "type": .string("object"), "properties": .dictionary([mark: .dictionary(content)]),
      "required": .array([.string(mark)]), "additionalProperties": .bool(false),
    ]
  }

  private static func anyOf(_ forms: [[String: Value]]) -> [String: Value] {
    forms.count == 1 ? forms[0] : ["anyOf": .array(forms.map(Value.dictionary))]
  }

  /// The value as an export writes it; nil if JSON cannot express it.
  private static func exported(_ value: Value) -> Value? {
    try? PortableValue.tree(value, native: SettingsFormat.json.native)
  }
}
