/// Reads declarations in the form of `FORMAT.md`, and finds everything that is wrong with them: they come from stores and files
/// of other people.
package struct DeclarationReader {
  /// Something that is wrong with a declaration.
  package struct Problem: Hashable, Sendable {
    /// The names and numbers that lead to it from the declaration: `limits`, `0`, `minimumm`.
    package let path: [String]
    /// A clause, such as "its type is missing".
    package let reason: String
  }

  /// Whether names that have no meaning are problems, and limits that can limit nothing; a store may have names of a later version.
  private let isStrict: Bool
  /// The collection of a setting that names none.
  private let ownCollection: String
  private var problems: [Problem] = []

  /// The longest declaration, in bytes of JSON.
  static let byteLimit = 262_144
  /// The most limits of one setting: each write compares with all of them, and a pattern may take long.
  private static let limitCount = 16

  /// Parses a dictionary, and checks the declaration.
  ///
  /// - Returns: The declaration if there are no problems, and the problems.
  package static func read(
    _ value: Value, isStrict: Bool, ownCollection: String = ""
  ) -> (declaration: Declaration?, problems: [Problem]) {
    var reader = DeclarationReader(isStrict: isStrict, ownCollection: ownCollection)
    let declaration = reader.declaration(value)
    return (reader.problems.isEmpty ? declaration : nil, reader.problems)
  }

  /// The setting that a value declares, for sentences; nil if it has no name.
  package static func name(of value: Value) -> String? {
    guard case .dictionary(let members) = value, case .string(let name)? = members["name"] else { return nil }
    guard case .string(let collection)? = members["collection"] else { return Value.string(name).shortText }
    return Value.string(KeyText.of(name, in: collection)).shortText
  }

  private init(isStrict: Bool, ownCollection: String) {
    (self.isStrict, self.ownCollection) = (isStrict, ownCollection)
  }

  private mutating func note(_ path: String..., reason: String) { problems.append(Problem(path: path, reason: reason)) }

  // MARK: - Declarations

  private static let names = [
    "name", "collection", "type", "default", "limits", "summary", "effect", "since", "deprecated", "shared",
    "formerly", "renamed",
  ]

  private mutating func declaration(_ value: Value) -> Declaration? {
    guard case .dictionary(let members) = value else {
      note(reason: "it is not an object")
      return nil
    }
    if isStrict {
      for name in members.keys.filter({ !Self.names.contains($0) }).sorted() {
        note(name, reason: "\"\(name)\" is unknown; a declaration has \(Self.names.joined(separator: ", "))")
      }
    }
    let name = text(members, "name")
    if name == nil, !problems.contains(where: { $0.path == ["name"] }) { note("name", reason: "it has no name") }
    let type = type(members)
    guard let name, let type else { return nil }
    var declaration = Declaration(name, in: text(members, "collection") ?? ownCollection, type: type)
    declaration.defaultValue = defaultValue(members, type)
    declaration.limits = limits(members, type)
    declaration.summary = text(members, "summary") ?? ""
    if let effect = text(members, "effect") {
      if let known = SettingEffect(rawValue: effect) {
        declaration.effect = known
      } else {
        note("effect", reason: "its effect \"\(effect)\" is unknown: it is immediate or restart")
      }
    }
    declaration.since = text(members, "since")
    declaration.deprecated = text(members, "deprecated")
    declaration.isShared = isShared(members)
    declaration.formerNames = formerNames(members, in: declaration.collection)
    if let renamed = members["renamed"], renamed != .null {
      declaration.renamed = place(renamed, in: declaration.collection, "renamed")
    }
    if problems.isEmpty, let value = declaration.defaultValue, let problem = declaration.problem(of: value) {
      note("default", reason: "its default must be \(problem)")
    }
    return declaration
  }

  private mutating func text(_ members: [String: Value], _ name: String) -> String? {
    switch members[name] {
    case nil, .null: return nil
    case .string(let text): return text
    default:
      note(name, reason: "\"\(name)\" is not text")
      return nil
    }
  }

  private mutating func type(_ members: [String: Value]) -> SettingType? {
    guard let name = text(members, "type") else {
      if !problems.contains(where: { $0.path == ["type"] }) { note("type", reason: "its type is missing") }
      return nil
    }
    if let type = SettingType(name) { return type }
    let known = "it is \(SettingType.nameList), array<TYPE> or dict<TYPE>, nested up to \(SettingType.depthLimit) deep"
    note("type", reason: "its type \"\(Value.string(name).shortText)\" is unknown: \(known)")
    return nil
  }

  private mutating func defaultValue(_ members: [String: Value], _ type: SettingType) -> Value? {
    guard let plain = members["default"], plain != .null else { return nil }
    if type == .secret {
      note("default", reason: "a secret cannot have a default")
      return nil
    }
    guard let value = type.value(plain: plain) else {
      note("default", reason: "its default is not of its type, \(type)")
      return nil
    }
    return value
  }

  private mutating func isShared(_ members: [String: Value]) -> Bool {
    switch members["shared"] {
    case nil, .null, .bool(false): return false
    case .bool(true): return true
    default:
      note("shared", reason: "\"shared\" is neither true nor false")
      return false
    }
  }

  // MARK: - Other names

  private mutating func formerNames(
    _ members: [String: Value], in collection: String
  ) -> [Declaration.FormerName] {
    switch members["formerly"] {
    case nil, .null: return []
    case .array(let values):
      return values.enumerated().compactMap { index, value in
        guard let place = place(value, in: collection, "formerly", "\(index)") else { return nil }
        var former = Declaration.FormerName(place: place)
        refuseUnknown(in: value, "formerly", "\(index)")
        if case .dictionary(let members) = value, members["converted"] == .bool(true) { former.isConverted = true }
        return former
      }
    default:
      note("formerly", reason: "its former names are not a list")
      return []
    }
  }

  /// A name, in the collection of the setting unless it has its own.
  private mutating func place(_ value: Value, in collection: String, _ path: String...) -> SettingPlace? {
    guard case .dictionary(let members) = value, case .string(let name)? = members["name"] else {
      let reason = "another name is an object with a name, and a collection unless it is its own"
      problems.append(Problem(path: path, reason: reason))
      return nil
    }
    guard case .string(let other)? = members["collection"] else { return SettingPlace(name, in: collection) }
    return SettingPlace(name, in: other)
  }

  private mutating func refuseUnknown(in value: Value, _ path: String...) {
    guard isStrict, case .dictionary(let members) = value else { return }
    for name in members.keys.sorted() where !["name", "collection", "converted"].contains(name) {
      let reason = "in a former name, \"\(name)\" is unknown; it has name, collection, converted"
      problems.append(Problem(path: path + [name], reason: reason))
    }
  }

  // MARK: - Limits

  private mutating func limits(_ members: [String: Value], _ type: SettingType) -> [SettingLimit] {
    switch members["limits"] {
    case nil, .null: return []
    case .array(let values) where values.count > Self.limitCount:
      note("limits", reason: "it has more than \(Self.limitCount) limits")
      return []
    case .array(let values):
      return values.enumerated().compactMap { index, value in limit(value, at: "\(index)", type) }
    default:
      note("limits", reason: "its limits are not a list")
      return []
    }
  }

  private static let limitNames: [(first: String, second: String?)] = [
    ("minimum", "maximum"), ("choices", nil), ("minimumCount", "maximumCount"), ("pattern", nil), ("words", nil),
  ]

  private mutating func limit(_ value: Value, at index: String, _ type: SettingType) -> SettingLimit? {
    let known = "a limit has minimum and maximum, or minimumCount and maximumCount, or choices, or pattern, or words"
    guard case .dictionary(let members) = value else {
      note("limits", index, reason: "a limit is not an object; \(known)")
      return nil
    }
    let kinds = Self.limitNames.filter { members[$0.first] != nil || $0.second.flatMap { members[$0] } != nil }
    let unknown = members.keys.filter { name in !Self.limitNames.contains { $0.first == name || $0.second == name } }
      .sorted()
    if isStrict || kinds.isEmpty {
      for name in unknown { note("limits", index, name, reason: "in a limit, \"\(name)\" is unknown; \(known)") }
    }
    guard kinds.count == 1, let kind = kinds.first else {
      if kinds.count > 1 { note("limits", index, reason: "a limit is of several kinds; write one object for each") }
      if kinds.isEmpty, unknown.isEmpty { note("limits", index, reason: "a limit is empty; \(known)") }
      return nil
    }
    guard let limit = limit(members, kind.first, at: index, type) else { return nil }
    if let problem = limit.problem {
      note("limits", index, kind.first, reason: problem)
      return nil
    }
    if isStrict, !limit.applies(to: type) {
      note("limits", index, kind.first, reason: "a limit with \(kind.first) does not apply to the type \(type)")
    }
    return limit
  }

  private mutating func limit(
    _ members: [String: Value], _ kind: String, at index: String, _ type: SettingType
  ) -> SettingLimit? {
    switch kind {
    case "minimum":
      guard let minimum = bound(members, "minimum", at: index, type),
        let maximum = bound(members, "maximum", at: index, type)
      else { return nil }
      return .range(minimum: minimum, maximum: maximum)
    case "choices":
      guard case .array(let choices)? = members[kind] else {
        note("limits", index, kind, reason: "its choices are not a list")
        return nil
      }
      let values = choices.compactMap(type.value(plain:))
      guard values.count == choices.count else {
        note("limits", index, kind, reason: "its choices are not all of its type, \(type)")
        return nil
      }
      return .choices(values)
    case "minimumCount":
      guard let minimum = count(members, "minimumCount", at: index),
        let maximum = count(members, "maximumCount", at: index)
      else { return nil }
      return .count(minimum: minimum ?? 0, maximum: maximum)
    default:
      guard case .string(let text)? = members[kind] else {
        note("limits", index, kind, reason: "\"\(kind)\" is not text")
        return nil
      }
      return kind == "pattern" ? .pattern(text) : .described(text)
    }
  }

  /// A bound of a range: nil inside if it is omitted, nil if it is malformed.
  private mutating func bound(
    _ members: [String: Value], _ name: String, at index: String, _ type: SettingType
  ) -> Value?? {
    guard let plain = members[name] else { return .some(nil) }
    guard let value = type.value(plain: plain) else {
      note("limits", index, name, reason: "its \(name) is not of its type, \(type)")
      return nil
    }
    return value
  }

  /// A bound of a length, as in `bound`.
  private mutating func count(_ members: [String: Value], _ name: String, at index: String) -> Int?? {
    guard let value = members[name] else { return .some(nil) }
    guard case .int(let number) = value, let count = Int(exactly: number) else {
      note("limits", index, name, reason: "its \(name) is not a whole number")
      return nil
    }
    return count
  }
}

extension SettingLimit {
  /// Whether the limit can refuse a value of a type.
  fileprivate func applies(to type: SettingType) -> Bool {
    switch (self, type) {
    case (_, .any), (.choices, _), (.described, _): true
    case (.range, .int), (.range, .double), (.range, .date), (.range, .string): true
    case (.count, .string), (.count, .data), (.count, .secret), (.count, .array), (.count, .dictionary): true
    case (.pattern, .string): true
    default: false
    }
  }
}
