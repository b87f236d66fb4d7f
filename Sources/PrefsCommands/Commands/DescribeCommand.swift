import ArgumentParser
import Coffer

/// The command `prefs describe`.
struct DescribeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "describe",
    abstract: "Describe a declared setting.",
    discussion: """
      Prints its type, limits, default, current value and the origin of that value, its summary, when a change takes \
      effect, and which programs declare it. A value that does not match the declaration is a problem, and skipped. A program that takes arguments or variables of its process prefers those, unless the \
      value is locked; what they are for a program that runs is not known here. Secrets are shown only by their size, values of sealed collections not at \
      all.

      Examples:
        prefs describe shop/http.port
        prefs describe shop/http.port --json
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// A setting and its value.
  private struct Found {
    let setting: DeclaredKeys.Setting
    let value: Value?
    let origin: String?
    var problems: [SettingProblem] = []
    /// Whether nothing that only its program knows comes before the value.
    var isLocked = false
  }

  mutating func run() throws {
    var reference = try common.reference(key)
    var otherNames: [(String, String)] = []
    var overruled: DeclaredSetting?
    let found = try CommandSession(common, in: reference.certainPlaces).read { transaction in
      reference = try reference.resolved(transaction)
      let declared = try DeclaredKeys(transaction)
      guard let setting = declared.setting(reference.key, in: reference.collection) else {
        let name = KeyText.of(reference.key, in: reference.collection)
        throw Failure(.notFound, "\(name) is \(declared.absence(of: reference.key, in: reference.collection))")
      }
      otherNames = try declared.otherNames(of: setting, at: reference, transaction)
      overruled = try transaction.overruledDeclaration(forKey: reference.key, inCollection: reference.collection)
      let declaration = setting.declaration
      let search = try transaction.effectiveSettings(in: reference.place).info(
        reference.key, by: declaration, transaction)
      guard let found = search.found else { return Found(setting: setting, value: nil, origin: nil) }
      let origin = found.origin(in: reference.place.parent, \.collection)
      if case .stored(let info) = found, info.kind == .sealed {
        return Found(
          setting: setting, value: .string(Redaction.sealed), origin: origin, problems: search.problems)
      }
      let value = try transaction.value(of: found, forKey: reference.key) ?? .null
      let isSecret = try transaction.isDeclaredSecret(reference.key, inCollection: reference.collection)
      let isHidden = isSecret && value.kind != .secret
      return Found(
        setting: setting, value: isHidden ? .string("<secret>") : value, origin: origin,
        problems: search.problems, isLocked: found.isLocked)
    }
    try StandardOutput.write(
      json
        ? Self.json(found, otherNames, overruled, reference) + "\n" : Self.text(found, otherNames, overruled, reference)
    )
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

  private static func text(
    _ found: Found, _ otherNames: [(String, String)], _ overruled: DeclaredSetting?, _ reference: KeyReference
  ) -> String {
    let declaration = found.setting.declaration
    var rows: [(String, String)] = [("type", declaration.type.description)]
    if !declaration.limits.isEmpty {
      rows.append(("limits", declaration.limits.map(\.words).joined(separator: "; ")))
    }
    rows.append(("default", declaration.defaultValue.map(ValueText.text) ?? "none"))
    rows.append(("value", found.value.map(ValueText.text) ?? "none"))
    if let origin = found.origin { rows.append(("from", origin)) }
    if !found.isLocked { rows.append(("unless", "its program takes an argument or a variable of its process")) }
    for problem in found.problems { rows.append(("problem", "\(problem)")) }
    rows.append(("effect", declaration.effect == .restart ? "when the program next starts" : "immediately"))
    if let since = declaration.since { rows.append(("since", since)) }
    if let deprecated = declaration.deprecated { rows.append(("deprecated", deprecated)) }
    rows += otherNames
    rows.append(("declared by", found.setting.ownerText))
    if let overruled { rows.append(("otherwise by", text(overruled))) }
    var table = Table()
    for (name, text) in rows { table.add(["  " + name, DisplayText.escapingControls(text)]) }
    let name = DisplayText.escapingControls(KeyText.of(reference.key, in: reference.collection))
    let summary = declaration.summary.isEmpty ? "" : "  \(DisplayText.escapingControls(declaration.summary))\n"
    return "\(name)\n\(summary)" + table.lines().joined()
  }

  private static func json(
    _ found: Found, _ otherNames: [(String, String)], _ overruled: DeclaredSetting?, _ reference: KeyReference
  ) -> String {
    let declaration = found.setting.declaration
    func text(_ text: String?) -> String { text.map(JSONText.quoted) ?? "null" }
    func value(_ value: Value?) -> String { value.map { JSONText.text($0, bigIntegers: .strings) } ?? "null" }
    return JSONText.object([
      ("collection", JSONText.quoted(reference.collection)),
      ("key", JSONText.quoted(reference.key)),
      ("type", JSONText.quoted(declaration.type.description)),
      ("limits", JSONText.array(declaration.limits.map { JSONText.quoted($0.words) })),
      ("default", value(declaration.defaultValue)),
      ("value", value(found.value)),
      ("origin", text(found.origin)),
      ("problem", text(found.problems.isEmpty ? nil : found.problems.map(\.description).joined(separator: "; "))),
      ("summary", JSONText.quoted(declaration.summary)),
      ("effect", JSONText.quoted(declaration.effect.rawValue)),
      ("since", text(declaration.since)),
      ("deprecated", text(declaration.deprecated)),
      ("otherNames", JSONText.array(otherNames.map { JSONText.quoted("\($0.0) \($0.1)") })),
      ("declaredBy", found.setting.ownerJSON),
      ("otherwiseBy", text(overruled.map(Self.text))),
    ])
  }
}
