import ArgumentParser
import Coffer

/// The command `prefs describe`.
struct DescribeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "describe",
    abstract: "Describe a declared setting.",
    discussion: """
      Prints its type, limits, default, current value and the origin of that value, its summary, when a change takes \
      effect, and which programs declare it. Secrets are shown only by their size, values of sealed collections not at \
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
    let problem: String?
  }

  mutating func run() throws {
    let reference = try common.reference(key)
    let managed = try reference.managed()
    let found = try Session(common, in: [reference.place]).read { transaction in
      let declared = try DeclaredKeys(transaction)
      guard let setting = declared.setting(reference.key, in: reference.collection) else {
        let near = declared.near(reference.key, in: reference.collection)
        let name = KeyReference.text(reference.key, in: reference.collection)
        throw Failure(.notFound, "\(name) is not declared\(near.map { "; did you mean \"\($0)\"?" } ?? ".")")
      }
      let declaration = setting.declaration
      func found(_ value: Value, _ origin: String) -> Found {
        let isHidden = declaration.type == .secret && value.kind != .secret
        return Found(
          setting: setting, value: isHidden ? .string("<secret>") : value, origin: origin,
          problem: declaration.problem(of: value))
      }
      if let locked = managed.locked(forKey: reference.key) { return found(locked.value, locked.place.description) }
      for collection in reference.place.shown {
        guard let info = try transaction.info(forKey: reference.key, inCollection: collection) else { continue }
        let origin = reference.place.origin(collection)
        if info.kind == .sealed {
          return Found(setting: setting, value: .string(Redaction.sealed), origin: origin, problem: nil)
        }
        return found(try transaction.value(forKey: reference.key, inCollection: collection) ?? .null, origin)
      }
      if let hostDefault = managed.defaultValue(forKey: reference.key) {
        return found(hostDefault.value, hostDefault.place.description)
      }
      let fallback = declaration.defaultValue
      return Found(setting: setting, value: fallback, origin: fallback.map { _ in "default" }, problem: nil)
    }
    try StandardOutput.write(json ? Self.json(found, reference) + "\n" : Self.text(found, reference))
  }

  // MARK: - Forms

  private static func text(_ found: Found, _ reference: KeyReference) -> String {
    let declaration = found.setting.declaration
    var rows: [(String, String)] = [("type", declaration.type.description)]
    if !declaration.limits.isEmpty {
      rows.append(("limits", declaration.limits.map(\.words).joined(separator: "; ")))
    }
    rows.append(("default", declaration.defaultValue.map(ValueText.text) ?? "none"))
    rows.append(("value", found.value.map(ValueText.text) ?? "none"))
    if let origin = found.origin { rows.append(("from", origin)) }
    if let problem = found.problem { rows.append(("problem", "it must be \(problem)")) }
    rows.append(("effect", declaration.effect == .restart ? "when the program next starts" : "immediately"))
    if let since = declaration.since { rows.append(("since", since)) }
    if let deprecated = declaration.deprecated { rows.append(("deprecated", deprecated)) }
    rows.append(("declared by", found.setting.ownerText))
    var table = Table()
    for (name, text) in rows { table.add(["  " + name, DisplayText.escapingControls(text)]) }
    let name = DisplayText.escapingControls(KeyReference.text(reference.key, in: reference.collection))
    let summary = declaration.summary.isEmpty ? "" : "  \(DisplayText.escapingControls(declaration.summary))\n"
    return "\(name)\n\(summary)" + table.lines().joined()
  }

  private static func json(_ found: Found, _ reference: KeyReference) -> String {
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
      ("problem", text(found.problem)),
      ("summary", JSONText.quoted(declaration.summary)),
      ("effect", JSONText.quoted(declaration.effect.rawValue)),
      ("since", text(declaration.since)),
      ("deprecated", text(declaration.deprecated)),
      ("declaredBy", found.setting.ownerJSON),
    ])
  }
}
