import ArgumentParser
import Coffer

/// The command `prefs schema print`.
struct SchemaPrintCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "print",
    abstract: "Print the declared settings.",
    discussion: """
      The same as `prefs schema`: all of them, those of a collection, or with --app those of an application, in every collection. \
      The format is
        markdown     a table for people;
        json-schema  a JSON Schema (draft 2020-12) for the output of `prefs export --format json`, for one collection or all;
        json         the input of `prefs schema load`.

      Examples:
        prefs schema
        prefs schema --format markdown --collection shop
        prefs schema --format json-schema -c shop
        prefs schema print --format json
      """)

  @Option(help: "The format to write.")
  var format: Format = .markdown

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// The output formats.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case markdown, json, jsonSchema = "json-schema"
  }

  mutating func run() throws {
    let named = try common.collection(nil)
    let application = common.application()
    var collection = named?.name
    let (declared, settings, schema) = try CommandSession(common, in: named.map { [$0] } ?? []).read { transaction in
      let declared = try DeclaredKeys(transaction)
      let sealed = try transaction.allCollections().filter { try transaction.isSealed(collection: $0) }
      var settings = collection.map(declared.settings(in:)) ?? declared.settings
      if let application {
        settings = declared.settings.filter { setting in
          setting.isDeclared(by: application)
            || ByteString(setting.declaration.collection) == ByteString(application)
        }
        // The document of one collection if that has all of them.
        if settings.contains(where: { ByteString($0.declaration.collection) != ByteString(application) }) {
          collection = nil
        }
      }
      return (
        declared, settings,
        SettingsSchema(sealedCollections: Set(sealed.map { ByteString($0) }))
      )
    }
    let text =
      switch format {
      case .markdown: Self.markdown(settings, declared)
      // A former name is the older version's: who loads the file declares the new one.
      case .json: Self.json(settings.filter { $0.declaration.renamed == nil && $0.isInForce })
      case .jsonSchema:
        JSONFile.text(.value(collection.map { schema.document(of: settings, in: $0) } ?? schema.document(of: settings)))
      }
    try StandardOutput.write(text)
  }

  // MARK: - Forms

  private static func markdown(_ settings: [DeclaredKeys.Setting], _ declared: DeclaredKeys) -> String {
    func cell(_ text: String) -> String {
      DisplayText.escapingControls(text).replacing("\\", with: "\\\\").replacing("|", with: "\\|")
        .replacing("<", with: "&lt;")
    }
    var text = "| setting | type | limits | default | meaning | effect |\n| --- | --- | --- | --- | --- | --- |\n"
    for setting in settings {
      let declaration = setting.declaration
      let name = KeyText.of(declaration.name, in: declaration.collection)
      var meaning = [declaration.summary]
      if let since = declaration.since { meaning.append("(since \(since))") }
      if let deprecated = declaration.deprecated { meaning.append("Deprecated: \(deprecated)") }
      for (what, other) in declared.otherNames(of: setting) {
        meaning.append("\(what.prefix(1).uppercased())\(what.dropFirst()) \(other).")
      }
      let cells = [
        name, declaration.type.description, declaration.limits.map(\.words).joined(separator: "; "),
        declaration.defaultValue.map(ValueText.text) ?? "", meaning.filter { !$0.isEmpty }.joined(separator: " "),
        declaration.effect.rawValue,
      ]
      text += "| \(cells.map(cell).joined(separator: " | ")) |\n"
    }
    return text
  }

  private static func json(_ settings: [DeclaredKeys.Setting]) -> String {
    let lines = settings.flatMap { setting in
      setting.owners.map { owner in
        JSONText.object([
          ("application", JSONText.quoted(owner.application)),
          ("version", owner.version.map(JSONText.quoted) ?? "null"),
          ("declaration", setting.declaration.json),
        ])
      }
    }
    return lines.isEmpty ? "[]\n" : "[\n  \(lines.joined(separator: ",\n  "))\n]\n"
  }
}
