import Coffer
import PrefsCommands

/// Settings as JSON for the page: as `prefs list --json` prints them, with additional members.
struct SettingJSON {
  let reader: SettingReader
  let scope: CollectionScope

  /// Lists leave out longer values; the setting itself has them.
  private static let listedByteCount = 2048
  /// Longer values cannot be edited in a page.
  private static let editedByteCount = 4 << 20

  /// Longer texts are edited in the details, not in a row of the list.
  private static let rowByteCount = 200
  /// The types that a row has room to edit.
  private static let rowTypes: Set = ["bool", "int", "double", "string"]

  /// An entry of the list; with the initial text of an editor, and the limits that it checks, if it can be changed in its row.
  func row(_ key: String, _ collection: String, _ transaction: borrowing some Reading & ~Copyable) throws -> String {
    let setting = try described(key, collection, limit: Self.listedByteCount, transaction)
    var (members, value) = (setting.members, setting.value)
    let declaration = reader.declared.setting(key, in: collection)?.declaration
    let declared = declaration?.type.description
    let type = declared == nil || declared == SettingType.any.description ? value?.kind.name : declared
    let text = value.map(ValueText.text) ?? ""
    let fits = text.utf8.count <= Self.rowByteCount && !text.unicodeScalars.contains { $0.value < 0x20 }
    if setting.isEditable, fits, let type, Self.rowTypes.contains(type), value != nil || type != "bool" {
      members.append(("text", JSONText.quoted(text)))
      if let declaration { members.append(("declaration", declaration.jsonForJavaScript)) }
    }
    return JSONText.object(members)
  }

  /// A setting with all its details, and the initial text of an editor.
  func whole(_ key: String, _ collection: String, _ transaction: borrowing some Reading & ~Copyable) throws -> String {
    let described = try described(key, collection, limit: Self.editedByteCount, transaction)
    var (members, value) = (described.members, described.value)
    members.append(("text", try value.map { JSONText.quoted(try EditedText.text(of: $0)) } ?? "null"))
    let command = try SettingCommand(key, collection).setting(value, isHidden: described.isHidden)
    members += [
      ("command", command.map(JSONText.quoted) ?? "null"),
      ("link", JSONText.quoted(SettingCommand(key, collection).opening)),
    ]
    if let setting = reader.declared.setting(key, in: collection) {
      members += [
        ("declaration", setting.declaration.jsonForJavaScript),
        ("limitWords", JSONText.array(setting.declaration.limits.map { JSONText.quoted($0.words) })),
        ("declaredBy", JSONText.quoted(setting.ownerText)),
      ]
    }
    let author = try author(key, collection, transaction)
    members += [
      ("author", author.map(ChangeText.json) ?? "null"),
      ("fleets", try FleetText.json(ofSetting: key, in: collection, transaction)),
      ("siblings", JSONText.array(siblings(of: collection).map(JSONText.quoted))),
      ("administrator", try given(key, collection, transaction) ?? "null"),
    ]
    return JSONText.object(members)
  }

  /// What an administrator gives for a setting, as an entry of the list; nil if that is nothing.
  func given(_ key: String, _ collection: String, _ transaction: borrowing some Reading & ~Copyable) throws -> String? {
    let effective = try reader.effectiveSettings(in: collection, transaction)
    guard let given = effective.given(key) else { return nil }
    let isHidden = reader.declared.isSecret(key, in: collection) || given.value.kind == .secret
    let kind = given.value.kind.name
    return JSONText.object(
      ItemJSON.members(
        key, collection, nil, kind: kind, value: shown(given.value, nil, isHidden: isHidden, kind),
        origin: given.place.description)
        + [
          ("hidden", isHidden ? "true" : "false"), ("long", "false"),
          ("given", JSONText.quoted(effective.locked(key) == nil ? "default" : "locked")),
        ])
  }

  /// The collections that the page shows in columns beside a collection.
  private func siblings(of collection: String) -> [String] {
    let family = reader.families.first { $0.contains(collection) }
    return family?.collections.filter { !$0.utf8.elementsEqual(collection.utf8) } ?? []
  }

  private func author(
    _ key: String, _ collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Author? {
    let version = try transaction.version(forKey: key, inCollection: collection)
    guard version > 0 else { return nil }
    // Commits record their authors even if the collection keeps no history; a sealed item need not be opened.
    let commit = try transaction.changes(since: version - 1)?
      .first { $0.concerns(key: key, inCollection: collection) }
    if let author = commit?.author { return author }
    return reader.isSealed(collection) ? nil : try transaction.item(forKey: key, inCollection: collection)?.author
  }

  /// What rows and details have of a setting.
  private struct Described {
    let members: [(name: String, json: String)]
    /// nil if it must not be shown, or is too long.
    let value: Value?
    let isHidden: Bool
    /// Whether it may be shown and changed.
    let isEditable: Bool
  }

  private func described(
    _ key: String, _ collection: String, limit: Int, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Described {
    let info = try transaction.info(forKey: key, inCollection: collection)
    let declaration = reader.declared.setting(key, in: collection)?.declaration
    let effective = try reader.effectiveSettings(in: collection, transaction)
    let parent = effective.shown.dropFirst().first
    let search = try effective.info(key, by: declaration, transaction)
    let found = search.found
    let origin = found?.origin(in: parent, \.collection) ?? "default"
    var value: Value?
    /// The details of the visible value: in an environment it may be the parent's.
    var shownInfo = info
    var kind = declaration?.type.description ?? "any"
    var isLong = false
    switch found {
    case .stored(let shown)?:
      shownInfo = shown
      isLong = shown.byteCount > limit
      let isSealed = shown.kind == .sealed || reader.isSealed(shown.collection)
      kind = isSealed ? Value.Kind.sealed.name : shown.kind.name
      if !isSealed, !isLong { value = try transaction.value(forKey: key, inCollection: shown.collection) }
    case .locked(let given, _)?, .managed(let given, _)?: (value, kind) = (given, given.kind.name)
    case .declared(let given)?: value = given
    case nil: break
    }
    let isSecret = reader.declared.isSecret(key, in: collection)
    let isHidden = isSecret || value?.kind == .secret || kind == Value.Kind.secret.name
    var members = ItemJSON.members(
      key, collection, info, kind: kind, value: shown(value, shownInfo, isHidden: isHidden, kind), origin: origin)
    let own = EffectiveSettings.place(collection)
    let problems =
      try findings(key, collection, info, transaction).map(\.text)
      + search.problems.filter { !$0.place.utf8.starts(with: own.utf8) }.map { "\($0)." }
    let isConcealed = isHidden || kind == Value.Kind.sealed.name
    let lock = effective.locked(key)
    let isDefault = value != nil && value == declaration?.defaultValue && search.problems.isEmpty
    members += [
      ("store", "\(transaction.store)"),
      ("changed", info != nil && !isDefault ? "true" : "false"),
      ("declared", declaration == nil ? "false" : "true"),
      ("hidden", isConcealed ? "true" : "false"),
      ("long", isLong ? "true" : "false"),
      ("summary", JSONText.quoted(declaration?.summary ?? "")),
      ("problem", problems.isEmpty ? "null" : JSONText.quoted(problems.joined(separator: " "))),
      ("shownSize", shownInfo.map { "\($0.byteCount)" } ?? "null"),
      ("parent", parent.map(JSONText.quoted) ?? "null"),
      ("locked", lock.map { JSONText.quoted($0.place.description) } ?? "null"),
    ]
    return Described(
      members: members, value: isHidden ? nil : value, isHidden: isConcealed,
      isEditable: !isConcealed && !isLong && lock == nil)
  }

  /// The value in the list: never a secret, and nothing sealed.
  private func shown(_ value: Value?, _ info: ItemInfo?, isHidden: Bool, _ kind: String) -> Value? {
    if kind == Value.Kind.sealed.name { return info.map { Redaction.sealed(byteCount: $0.byteCount) } }
    guard isHidden, let value else { return value }
    // A secret is described by its length; a value that should be a secret is not shown either.
    return value.kind == .secret ? value : .string("<secret>")
  }

  private func findings(
    _ key: String, _ collection: String, _ info: ItemInfo?, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [SettingFinding] {
    guard info != nil, !reader.declared.settings(in: collection).isEmpty else { return [] }
    let isSealed = reader.isSealed(collection)
    return try SettingFinding.all(of: key, in: collection, reader.declared, isSealed: isSealed) {
      isSealed ? nil : try transaction.value(forKey: key, inCollection: collection)
    }
  }
}

/// Values as text to edit, and back.
enum EditedText {
  /// Scalars as their text, data as base64, lists and dictionaries as JSON in the form of `prefs edit`, from which the same value
  /// is read.
  static func text(of value: Value) throws -> String {
    switch value {
    case .array, .dictionary: JSONFile.text(.value(try PortableValue.tree(value, native: SettingsFormat.json.native)))
    default: ValueText.text(value)
    }
  }

  /// The value that a text stands for.
  ///
  /// - Throws: ``Failure`` with the status `format`; its message never holds the value.
  static func value(_ text: String, type: String, _ declaration: Declaration?) throws -> Value {
    if type == Value.Kind.secret.name {
      guard !text.isEmpty else { throw Failure(.format, "a secret must not be empty.") }
      return .secret(Secret(text))
    }
    guard let valueType = ValueType(rawValue: type) else { throw Failure(.usage, "unknown type \"\(type)\".") }
    switch valueType {
    case .array, .dict: return try composed(text, valueType, declaration)
    default:
      let reader = ValueReader(type: valueType, encoding: .base64)
      if let declaration { return try reader.value(Array(text.utf8), declaration.type) }
      return try reader.value(Array(text.utf8))
    }
  }

  private static func composed(_ text: String, _ type: ValueType, _ declaration: Declaration?) throws -> Value {
    let tree: Value
    let value: Value
    do {
      tree = try JSONFile.value(text)
      value = try PortableValue.value(tree)
    } catch let problem as FormatProblem {
      throw Failure(.format, "\(problem.reason).")
    }
    guard value.kind == (type == .array ? .array : .dictionary) else {
      throw Failure(.format, type == .array ? "not an array." : "not a dictionary.")
    }
    guard let declaration, !declaration.type.accepts(value) else { return value }
    return declaration.type.value(plain: tree) ?? value
  }
}
