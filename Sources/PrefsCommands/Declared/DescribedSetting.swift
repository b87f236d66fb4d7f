import Coffer

/// A declared setting with its value, as `prefs describe` prints it.
package struct DescribedSetting {
  private let reference: KeyReference
  private let setting: DeclaredKeys.Setting
  private let otherNames: [(String, String)]
  /// What a program of this host declares while a fleet's declaration holds that differs.
  private let overruled: DeclaredSetting?
  private let value: Value?
  private let origin: String?
  private let problems: [SettingProblem]
  /// Whether nothing that only its program knows comes before the value.
  private let isLocked: Bool

  /// - Throws: ``Failure`` with the status `notFound` if it is not declared.
  package init(_ reference: KeyReference, _ transaction: borrowing some Reading & ~Copyable) throws {
    let (key, collection) = (reference.key, reference.collection)
    let declared = try DeclaredKeys(transaction)
    guard let setting = declared.setting(key, in: collection) else {
      throw Failure(.notFound, "\(KeyText.of(key, in: collection)) is \(declared.absence(of: key, in: collection))")
    }
    self.reference = reference
    self.setting = setting
    otherNames = try declared.otherNames(of: setting, at: reference, transaction)
    overruled = try transaction.overruledDeclaration(forKey: key, inCollection: collection)
    let search = try transaction.effectiveSettings(in: reference.place).info(
      key, by: setting.declaration, transaction)
    problems = search.problems
    isLocked = search.found?.isLocked ?? false
    origin = search.found?.origin(in: reference.place.parent, \.collection)
    switch search.found {
    case nil: value = nil
    case .stored(let info)? where info.kind == .sealed: value = .string(Redaction.sealed)
    case let found?:
      let known = try transaction.value(of: found, forKey: key) ?? .null
      let isSecret = try transaction.isDeclaredSecret(key, inCollection: collection)
      value = isSecret && known.kind != .secret ? .string("<secret>") : known
    }
  }

  // MARK: - Forms

  /// What a program of this host declares while a fleet's declaration holds that differs.
  private static func text(_ overruled: DeclaredSetting) -> String {
    let declaration = overruled.declaration
    let limits = declaration.limits.map(\.words)
    let value = declaration.defaultValue.map { ["default \(ValueText.text($0))"] } ?? []
    let parts = [declaration.type.description] + limits + value
    return "\(overruled.owner) on this host: \(parts.joined(separator: ", "))"
  }

  /// For people.
  var text: String {
    let declaration = setting.declaration
    var rows: [(String, String)] = [("type", declaration.type.description)]
    if !declaration.limits.isEmpty {
      rows.append(("limits", declaration.limits.map(\.words).joined(separator: "; ")))
    }
    rows.append(("default", declaration.defaultValue.map(ValueText.text) ?? "none"))
    rows.append(("value", value.map(ValueText.text) ?? "none"))
    if let origin { rows.append(("from", origin)) }
    if !isLocked { rows.append(("unless", "its program takes an argument or a variable of its process")) }
    for problem in problems { rows.append(("problem", "\(problem)")) }
    rows.append(("effect", declaration.effect == .restart ? "when the program next starts" : "immediately"))
    if let since = declaration.since { rows.append(("since", since)) }
    if let deprecated = declaration.deprecated { rows.append(("deprecated", deprecated)) }
    rows += otherNames
    rows.append(("declared by", setting.ownerText))
    if let overruled { rows.append(("otherwise by", Self.text(overruled))) }
    var table = Table()
    for (name, text) in rows { table.add(["  " + name, DisplayText.escapingControls(text)]) }
    let name = DisplayText.escapingControls(KeyText.of(reference.key, in: reference.collection))
    let summary = declaration.summary.isEmpty ? "" : "  \(DisplayText.escapingControls(declaration.summary))\n"
    return "\(name)\n\(summary)" + table.lines().joined()
  }

  /// One object.
  package var json: String {
    let declaration = setting.declaration
    func text(_ text: String?) -> String { text.map(JSONText.quoted) ?? "null" }
    func value(_ value: Value?) -> String { value.map { JSONText.text($0, bigIntegers: .strings) } ?? "null" }
    return JSONText.object([
      ("collection", JSONText.quoted(reference.collection)),
      ("key", JSONText.quoted(reference.key)),
      ("type", JSONText.quoted(declaration.type.description)),
      ("limits", JSONText.array(declaration.limits.map { JSONText.quoted($0.words) })),
      ("default", value(declaration.defaultValue)),
      ("value", value(self.value)),
      ("origin", text(origin)),
      ("problem", text(problems.isEmpty ? nil : problems.map(\.description).joined(separator: "; "))),
      ("summary", JSONText.quoted(declaration.summary)),
      ("effect", JSONText.quoted(declaration.effect.rawValue)),
      ("since", text(declaration.since)),
      ("deprecated", text(declaration.deprecated)),
      ("otherNames", JSONText.array(otherNames.map { JSONText.quoted("\($0.0) \($0.1)") })),
      ("declaredBy", setting.ownerJSON),
      ("otherwiseBy", text(overruled.map(Self.text))),
    ])
  }
}
