import ArgumentParser
import Coffer

/// The command `prefs watch`.
struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print changes as they are committed, by any process.",
    discussion: """
      Prints one change per line: position of the commit, kind of change, and key. The position is the number of the \
      commit and a digest of it and all before it: 120-5f0c22d1. Commits are in order, and each key is \
      listed once for each commit that changed it. The kind is inserted, updated, removed, expired or touched; for a \
      collection, cleared if all of its keys were removed, or unlisted if too many of them changed to be listed. \
      The kind everything, which has no key, means that any key of the store may have changed. What else a commit did has \
      a line of its own without a key, as in `prefs log`: slot 2 added; with --json, its kind is action.

      --since first prints the commits after that position and then continues, without omitting or repeating one. The store \
      remembers the last 10,000 commits. If that is not enough, or the position is not of this store's history, as after a \
      restore, everything is printed. A number alone is of no history; 0 stands for the beginning.

      With --json, the time and the author of the commit are included, as in `prefs log`; of a key that expired, the time \
      when it did.

      --values adds the value that the key has when the line is printed; secrets and sealed values are shown only with \
      --reveal. The command runs until a signal ends it or its output is closed, and ends with an error once the key it was \
      started with opens the store no longer. While another store is in its place that it cannot open, it waits.

      Examples:
        prefs watch
        prefs watch editor
        prefs watch editor/theme --values
        prefs watch --json --since 120-5f0c22d1 | while read -r change; do …; done
      """)

  @Argument(
    help: "COLLECTION or COLLECTION/KEY; with -c a key. All collections if omitted.", completion: Completions.keys)
  var what: String?

  @Option(help: ArgumentHelp("Begin after the commit at this position.", valueName: "position"))
  var since: CommitPosition?

  @Flag(help: "Add the values.")
  var values = false

  @Flag(help: "With values: also show secrets and sealed values.")
  var reveal = false

  @Flag(help: "Print one JSON object per line.")
  var json = false

  @Flag(help: "Print fields separated by tabs: position, kind of change, collection, key, value.")
  var plain = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if json, plain { throw ValidationError("Use one of --json and --plain.") }
    if reveal, !values { throw ValidationError("--reveal goes with --values.") }
  }

  mutating func run() throws {
    let named = try ChangeFilter(what, common)
    let session = try CommandSession(common, in: named.certainPlaces, mayBeGone: true)
    try session.using(try session.openForReading()) { database in
      let connection = try database.makeConnection()
      let filter = try connection.read { try named.resolved($0) }
      let printer = ChangePrinter(
        filter: filter,
        text: ChangeText(form: json ? .json : plain ? .plain : .text),
        values: values
          ? ShownValues(
            session: session, database: database, connection: connection, redaction: Redaction(reveals: reveal)) : nil)
      let options = common.ofSession
      let environment = filter.collection.flatMap { Self.watched($0, options) }
      let registration = try database.onCommit(
        { commit in
          printer.print(commit)
          environment?.look(after: commit, of: database)
        },
        onTrouble: { error in
          guard let error else { return }
          if database.mustBeReopened(after: error) { return printer.fail(error.whileFollowing) }
          // Of a store that replaces this one, the library says what is wrong with it.
          if case .storeReplaced = error { return }
          options.note("changes cannot be read at present: \(error)")
        })
      defer { registration.cancel() }
      if let since {
        try printer.replay {
          try connection.read { (try $0.changes(since: since), try $0.position()) }
        }
      }
      common.detail("watching")
      throw printer.waitForEnd()
    }
  }
}

extension WatchCommand {
  /// Says that the environment that is watched was removed, and that it is there again.
  ///
  /// Until then, other commands refuse to read it. nil for a collection.
  private static func watched(_ collection: NamedCollection, _ options: SessionOptions) -> WatchedEnvironment? {
    guard collection.parent != nil, let environment = collection.environment else { return nil }
    let parent = DisplayText.collection(environment.parent)
    let name = "environment \"\(environment.name)\" of \(parent)"
    return WatchedEnvironment(environment) { isThere in
      options.note(
        isThere
          ? "\(name) is there again."
          : "\(name) was removed. Until there is one again, what follows are changes of \(parent) itself.")
    }
  }
}

extension CommitPosition: ExpressibleByArgument {}
