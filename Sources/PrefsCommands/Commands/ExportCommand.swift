import ArgumentParser
import Coffer

/// The command `prefs export`.
struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write settings into a file in clear.",
    discussion: """
      Writes one collection, or all of them, into a file that other programs read. The file holds everything in clear, \
      secrets too; only you may read it, and it never replaces another one.

      The format sqlite is a database with one table, settings: collection, key, type, value, metadata_type, metadata, \
      version, modified. `prefs import` makes the same values of it again.

      Examples:
        prefs export --format sqlite -o settings.sqlite
        prefs export editor --format sqlite -o editor.sqlite
        sqlite3 settings.sqlite "SELECT value FROM settings WHERE key = 'theme'"
      """)

  @Argument(help: "The collection; without it, all of them.")
  var name: String?

  @Option(help: "What to write.")
  var format: Format

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Where to write it; nothing may be there.", valueName: "file"), completion: .file())
  var output: String

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// What can be written.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case sqlite
  }

  mutating func validate() throws {
    if output == "" { throw ValidationError("--output needs a path.") }
    if name != nil, common.namedCollection != nil { throw ValidationError("Name the collection once.") }
  }

  mutating func run() throws {
    let session = try Session(common)
    let collection = name.map(CommandArguments.value) ?? common.namedCollection
    let bar = ProgressBar(isShown: !common.quiet && Terminal.isTerminal(2))
    let count = try session.using(try session.openForReading()) { database in
      if let collection { try Self.requireItems(collection, database) }
      defer { bar.finish() }
      return switch format {
      case .sqlite:
        try session.unlocking(database) {
          try database.exportPlain(to: output, collections: collection.map { [$0] }) { bar.show($0, of: "exporting") }
        }
      }
    }
    common.note("\(output) holds its settings in clear: delete it when it is no longer needed.")
    let text = JSONText.object([("output", JSONText.quoted(output)), ("items", "\(count)")])
    let items = DisplayText.count(count, "item", "items")
    try StandardOutput.write((json ? text : "\(items) written to \(DisplayText.escapingControls(output))") + "\n")
  }

  private static func requireItems(_ collection: String, _ database: Database) throws {
    let count = try database.makeConnection().read { try $0.numberOfKeys(inCollection: collection) }
    guard count > 0 || collection.isEmpty else {
      throw Failure(.notFound, "there is no \(KeyReference.describe(collection)).")
    }
  }
}
