import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs log`.
struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Show who changed what, and when.",
    discussion: """
      Prints one change per line, newest first: number of the commit, time, author, kind of change as in `prefs watch`, \
      and key. A line of its own says what else a commit did: `slot 2 added`, `history off for web`, `erased web`. A key \
      that expired has the time when it did, and no author. The store remembers its last 10,000 commits; for keys with history, earlier changes are shown, too, within \
      the limits of the history.

      The author of a commit is the program, its user, the host, and the person or job that --actor or PREFS_ACTOR named: \
      a note for people who share a store, not evidence. Anyone with the key can write any author.

      --verify checks whether commits were removed from the log or changed in it, and prints none; the exit code is 7 if \
      so. It says what vouches for the log: its chain alone, which anyone with the store's key can rebuild, or also the \
      freshness record outside of the store.

      Examples:
        prefs log
        prefs log shop/rate-limit
        prefs log shop --since 2d
        prefs log --since 2026-11-01 --json
        prefs log --verify
      """)

  @Argument(
    help: "COLLECTION or COLLECTION/KEY; with -c a key. All collections if omitted.", completion: Completions.keys)
  var what: String?

  @Option(help: ArgumentHelp("Only commits since then: a date, or a time before now.", valueName: "date"))
  var since: PastDate?

  @Option(help: ArgumentHelp("Show at most this many.", valueName: "n"))
  var limit: Int?

  @Flag(help: "Verify that the log is complete and unchanged; print no commits.")
  var verify = false

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if let limit, limit < 0 { throw ValidationError("--limit must be 0 or more.") }
    if verify, what != nil || since != nil || limit != nil {
      throw ValidationError("--verify checks the whole log; omit the setting, --since and --limit.")
    }
  }

  mutating func run() throws {
    if verify { return try verifyLog() }
    try common.checkCollectionCount()
    try request().run()
  }

  func request() throws -> LogRequest {
    let filter = try ChangeFilter(what, common)
    return LogRequest(
      filter: filter, name: what.map(CommandArguments.value), since: since?.date, limit: limit, form: form.choice,
      pager: form.pager, color: common.color, options: common.ofSession(in: filter.certainPlaces, mayBeGone: true))
  }

  private func verifyLog() throws {
    let session = try CommandSession(common)
    let report = try session.using(try session.openForReading()) { try $0.verifyChangeLog() }
    if form.choice == .json {
      let members = [
        ("ok", report.problems.isEmpty ? "true" : "false"), ("commits", "\(report.count)"),
        ("first", report.commits.map { "\($0.lowerBound)" } ?? "null"),
        ("last", report.commits.map { "\($0.upperBound)" } ?? "null"),
        ("recorded", report.recordedCommit.map { "\($0)" } ?? "null"), ("erased", "\(report.emptiedCount)"),
        ("erasures", JSONText.array(report.erasures.map { "\($0)" })),
        ("problems", JSONText.array(report.problems.map { JSONText.quoted($0.description) })),
      ]
      try StandardOutput.write(JSONText.object(members) + "\n")
    } else {
      try StandardOutput.write(Self.text(report))
    }
    if !report.problems.isEmpty { throw ExitCode(ExitStatus.integrity.rawValue) }
  }

  private static func text(_ report: ChangeLogReport) -> String {
    report.problems.isEmpty ? ChangeLogText(report: report).verdict : report.problems.map { "\($0)\n" }.joined()
  }
}
