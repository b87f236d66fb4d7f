import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs export`.
struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write settings, unencrypted, to a file.",
    discussion: """
      Writes one collection, or all of them by name, in a format that other programs read. `prefs import` restores the \
      same values from it. Secrets and sealed values are written as placeholders unless --reveal is given; an import \
      leaves those unchanged. The formats env and sqlite, whose readers would take a placeholder for the value, need \
      --reveal for them. An output file is readable only by you, and replaces an existing one atomically.

      The format is --format, or else that of the file extension, or else json:
        json    Text, numbers, booleans, null, lists and dictionaries are JSON's. Dates, data, URLs, UUIDs, JSON values, \
      NaN and infinities have no JSON form and become dictionaries with one name: {"$date": "2026-01-31T08:30:00.250Z"}, \
      {"$data": BASE64}, {"$url": …}, {"$uuid": …}, {"$json": …}, {"$double": "nan"}. A secret is {"$secret": …}; a \
      dictionary that looks like one of these is wrapped in {"$dict": …}. Integers above 2^53 are exact, though other \
      readers may round them.
        yaml    The same, but data is !!binary, dates are timestamps, NaN and infinities .nan and .inf.
        toml    The same, but dates are TOML's, NaN and infinities nan and inf; nulls are {"$null": true}, integers above \
      2^63-1 {"$int": "…"}. Text with U+0000 is refused.
        plist   XML on standard output, which allows only dates of whole seconds and no control characters; binary in a \
      file, which allows all. URLs are archived as by UserDefaults, except in lists and dictionaries; UUIDs and nulls as in toml.
        env     One collection as lines NAME='value' that POSIX shells, python-dotenv and Node's parser read alike: upper \
      case, _ for other characters. All values are text, as `prefs get` prints them. Refused are data, two keys with the same \
      name, and text that those read differently in any form, such as ${NAME}, or an apostrophe beside a $.
        sqlite  A database with a table settings (collection, key, type, value, metadata_type, metadata, version, \
      modified, expires, due) and a table declarations (application, version, declaration). Only this format keeps \
      metadata, declarations, expiries and due dates.

      With --env, what is stored for the collection in that environment is written, and from the collection itself what is not \
      set there. The format sqlite, which stores collections by name, gets both: the environment and its parent collection. What an \
      administrator gives or locks in files is not written; a note names the keys whose stored values are written below a lock.

      Each export is read back and compared before it is written. If a format cannot represent a value exactly, the export \
      fails with exit code 8, and nothing is written.

      Examples:
        prefs export editor --format yaml
        prefs export -o all.json
        prefs export editor -o editor.plist
        prefs export --format json | jq '.editor'
        prefs export --format sqlite -o settings.sqlite
        sqlite3 settings.sqlite "SELECT value FROM settings WHERE key = 'theme'"
      """)

  @Argument(help: "The collection; without it, all of them.", completion: Completions.collections)
  var name: String?

  @Option(help: "The format to write.")
  var format: Format?

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Where to write it; standard output if omitted.", valueName: "file"), completion: .file())
  var output: String?

  @Flag(help: "Also write secrets and the values of sealed collections.")
  var reveal = false

  @Flag(help: "Print a JSON object about what was written; needs --output.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// The output formats.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case plist, json, yaml, toml, env, sqlite

    init?(fileName: String) {
      if let format = SettingsFormat(fileName: fileName) {
        self.init(rawValue: format.rawValue)
      } else if [".sqlite", ".sqlite3"].contains(where: { fileName.lowercased().hasSuffix($0) }) {
        self = .sqlite
      } else {
        return nil
      }
    }
  }

  private var chosenFormat: Format { format ?? output.flatMap(Format.init(fileName:)) ?? .json }

  mutating func validate() throws {
    if output == "" { throw ValidationError("--output needs a path.") }
    if output == "-" { output = nil }
    if name != nil, !common.collection.isEmpty { throw ValidationError("Name the collection once.") }
    if output == nil {
      if chosenFormat == .sqlite { throw ValidationError("The format sqlite needs --output.") }
      if json { throw ValidationError("--json goes with --output.") }
    }
    if chosenFormat == .env, name == nil, common.namedCollection == nil {
      throw ValidationError("The format env holds one collection. Name it, or \"\" for the default collection.")
    }
  }

  mutating func run() throws {
    let collection = try common.collection(name)
    let session = try CommandSession(common, in: collection.map { [$0] } ?? [])
    if let output { try session.requireReplaceable(output) }
    var locks: [String] = []
    let count =
      try SettingsFormat(rawValue: chosenFormat.rawValue).map { try exportText($0, collection, session, &locks) }
      ?? exportDatabase(collection, session, &locks)
    for lock in locks { common.note(lock) }
    guard let output else { return }
    if !OutputFile.isSpecial(output) {
      common.note("\(output) holds its settings unencrypted: delete it when it is no longer needed.")
    }
    let text = JSONText.object([("output", JSONText.quoted(output)), ("items", "\(count)")])
    let items = DisplayText.count(count, "item", "items")
    if json { return try StandardOutput.report(text + "\n", of: "\(items) written to \(output)") }
    common.note("\(items) written to \(DisplayText.escapingControls(output)).")
  }

  // MARK: - Text

  private func exportText(
    _ format: SettingsFormat, _ collection: NamedCollection?, _ session: CommandSession, _ locks: inout [String]
  ) throws -> Int {
    let isBinary = output != nil && format == .plist
    let (bytes, tree) = try session.read { transaction in
      locks = try Self.locks(collection, transaction)
      var tree = SettingsTree(format: format, reveals: reveal, isBinary: isBinary)
      guard let collection else { return (try tree.fileOfAllCollections(transaction), tree) }
      try KeyReference.requireItems(in: collection.name, transaction)
      return (try tree.file(of: collection.shown, transaction), tree)
    }
    try tree.checkReadsBack(bytes, of: collection?.name)
    if let output {
      try OutputFile.place(bytes, at: output)
    } else {
      var answer = StandardOutput()
      answer.write(bytes)
      try answer.finish()
    }
    if tree.redactedCount > 0 {
      let secrets = DisplayText.count(tree.redactedCount, "secret is", "secrets are")
      common.note("\(secrets) not shown; --reveal writes them.")
    }
    if tree.metadataCount > 0 {
      let items = DisplayText.count(tree.metadataCount, "item has", "items have")
      common.note("\(items) metadata, which only the format sqlite keeps.")
    }
    if tree.datedCount > 0 {
      let items = DisplayText.count(tree.datedCount, "item expires or is", "items expire or are")
      common.note("\(items) due for renewal; only the format sqlite keeps the dates.")
    }
    return tree.itemCount
  }

  /// What is in force instead of stored values, as sentences.
  private static func locks(
    _ collection: NamedCollection?, _ transaction: borrowing ReadTransaction
  ) throws -> [String] {
    try (collection?.shown ?? transaction.allCollections()).flatMap { name in
      try transaction.notesOfLocks(transaction.allKeys(inCollection: name), in: name, isExport: true)
    }
  }

  // MARK: - SQLite

  private func exportDatabase(
    _ collection: NamedCollection?, _ session: CommandSession, _ locks: inout [String]
  ) throws -> Int {
    guard let output else { return 0 }
    return try session.using(try session.openForReading()) { database in
      try session.unlocking(database) {
        let declared = try database.makeConnection().read { transaction in
          if let collection { try KeyReference.requireItems(in: collection.name, transaction) }
          locks = try Self.locks(collection, transaction)
          return try DeclaredKeys(transaction)
        }
        var count = 0
        try ProgressBar.during("exporting", common) { progress in
          try OutputFile.place(at: output) { temporary, check in
            count = try database.exportPlain(
              to: temporary, collections: collection?.shown,
              progress: {
                try check()
                progress($0)
              },
              willWrite: { key, collection, kind in
                guard !reveal else { return }
                if kind == .secret || kind == .sealed { throw Redaction.refusal(key, collection, kind) }
                if declared.isSecret(key, in: collection) { throw Redaction.refusal(key, collection, .secret) }
              })
          }
        }
        return count
      }
    }
  }
}
