import ArgumentParser
import Coffer

/// The command `prefs watch`.
struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print changes as they are committed, by any process.",
    discussion: """
      One change a line: the number of the commit, what happened, and the key. Commits come in their order, and each key \
      once for each commit that changed it. What happens is one of inserted, updated, removed, expired and touched; for a collection \
      cleared, when it was removed as a whole, and unlisted, when too many of its keys changed to be listed: any of them \
      may have. everything, without a key, says that any key of the store may have changed.

      --since first prints what was committed after that number, and then goes on, with no commit left out or told twice. \
      The store remembers the last 10,000 commits; where that is not enough, everything says so.

      With --json there are also the time, and who made the commit, as `prefs log` shows it.

      --values adds the value that the key has when the line is printed; secrets and sealed values are not shown, unless \
      --reveal. The command goes on until a signal ends it, or nobody reads its output any more.

      Examples:
        prefs watch
        prefs watch editor
        prefs watch editor/theme --values
        prefs watch --json --since 120 | while read -r change; do …; done
      """)

  @Argument(
    help: "COLLECTION or COLLECTION/KEY; with -c a key. All collections when left out.", completion: Completions.keys)
  var what: String?

  @Option(help: ArgumentHelp("Begin after the commit of this number.", valueName: "n"))
  var since: UInt64?

  @Flag(help: "Add the values.")
  var values = false

  @Flag(help: "With values: show secrets and sealed values, too.")
  var reveal = false

  @Flag(help: "Print one JSON object a line.")
  var json = false

  @Flag(help: "Print fields separated by tabs: number, what happened, collection, key, value.")
  var plain = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if json, plain { throw ValidationError("Use one of --json and --plain.") }
    if reveal, !values { throw ValidationError("--reveal goes with --values.") }
  }

  mutating func run() throws {
    let filter = try ChangeFilter(what, common)
    let session = try Session(common, in: filter.collection.map { [$0] } ?? [])
    try session.using(try session.openForReading()) { database in
      let connection = try database.makeConnection()
      let printer = ChangePrinter(
        filter: filter,
        text: ChangeText(form: json ? .json : plain ? .plain : .text),
        values: values
          ? ShownValues(
            session: session, database: database, connection: connection, redaction: Redaction(reveals: reveal)) : nil)
      let registration = try database.onCommit(printer.print)
      defer { registration.cancel() }
      if let since {
        try printer.replay {
          try connection.read { (try $0.changes(since: since), try $0.snapshot()) }
        }
      }
      common.detail("watching")
      throw printer.waitForEnd()
    }
  }
}
