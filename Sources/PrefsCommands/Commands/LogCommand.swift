import ArgumentParser
import Coffer
import CofferMaintenance

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

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
    var filter = try ChangeFilter(what, common)
    let (changes, isDefaultKey) = try CommandSession(common, in: filter.certainPlaces).read { transaction in
      filter = try filter.resolved(transaction)
      let commits = try transaction.rememberedCommits()
      var changes = commits.flatMap(filter.changes)
      if let collection = filter.collection?.name, let key = filter.key {
        let first = commits.first?.number ?? .max
        changes = try Self.changes(of: key, in: collection, before: first, transaction) + changes
      }
      return (changes, try what.map { try transaction.hasObject(forKey: CommandArguments.value($0)) } ?? false)
    }
    let wanted = changes.reversed().filter { change in
      since.map { since in change.time.map { $0 >= since.date } ?? false } ?? true
    }
    try write(wanted.prefix(limit ?? .max))
    if wanted.isEmpty, let collection = filter.collection {
      let name = filter.key.map { "key \"\($0)\" in " } ?? ""
      let hint = isDefaultKey && filter.key == nil ? " Name a key of the default collection with -c \"\"." : ""
      common.note("the log has no matching change of \(name)\(DisplayText.collection(collection.name)).\(hint)")
    }
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

  /// The changes in a key's history from commits that the change log no longer contains, oldest first.
  private static func changes(
    of key: String, in collection: String, before first: CommitNumber, _ transaction: borrowing ReadTransaction
  ) throws -> [KeyChange] {
    func change(_ commit: CommitNumber, _ what: String, _ time: Date, _ author: Author?) -> KeyChange {
      KeyChange(commit: commit, what: what, collection: collection, key: key, time: time, author: author)
    }
    let history = try transaction.history(forKey: key, inCollection: collection).reversed()
    var changes: [KeyChange] = []
    var lastEnd: CommitNumber?
    for item in history {
      changes.append(change(item.version, item.version == lastEnd ? "updated" : "inserted", item.modified, item.author))
      changes.append(change(item.endVersion, item.hasExpired ? "expired" : "removed", item.ended, item.endedBy))
      lastEnd = item.endVersion
    }
    if let item = try transaction.info(forKey: key, inCollection: collection) {
      let author = try? transaction.item(forKey: key, inCollection: collection)?.author
      changes.append(change(item.version, item.version == lastEnd ? "updated" : "inserted", item.modified, author))
    }
    // An overwritten value was not removed.
    let set = Set(changes.filter { $0.what == "updated" }.map(\.commit))
    return changes.filter { $0.commit < first && ($0.what == "updated" || !set.contains($0.commit)) }
  }

  private func write(_ changes: ArraySlice<KeyChange>) throws {
    var output = StandardOutput(pager: form.pager)
    let text = ChangeText(form: .json)
    switch form.choice {
    case .json: output.write(JSONText.array(changes.map { text.object($0) }) + "\n")
    case .plain:
      for change in changes {
        output.write(fields(change).map(DisplayText.plainField).joined(separator: "\t") + "\n")
        try output.breathe()
      }
    case .nul:
      for change in changes {
        output.write(fields(change).joined(separator: "\t") + "\0")
        try output.breathe()
      }
    case .text:
      var table = Table()
      if !changes.isEmpty { table.add(["COMMIT", "TIME", "AUTHOR", "CHANGE", "KEY"]) }
      for change in changes { table.add(row(change).map { DisplayText.escapingControls($0) }) }
      let style = common.style
      for line in table.lines(rightAligned: [0], colored: { column, cell in column < 2 ? style.faint(cell) : cell }) {
        output.write(line)
        try output.breathe()
      }
    }
    try output.finish()
  }

  private func row(_ change: KeyChange) -> [String] {
    let place = change.collection.map { KeyText.of(change.key ?? "", in: $0) } ?? ""
    return [
      "\(change.commit)", change.time.map(Timestamp.text) ?? "", change.author?.description ?? "",
      change.action == nil ? change.what : "", change.action ?? place,
    ]
  }

  /// Number, time, program, user, host, actor, what happened, collection, key.
  private func fields(_ change: KeyChange) -> [String] {
    let author = change.author
    return [
      "\(change.commit)", change.time.map(Timestamp.text) ?? "", author?.program ?? "", author?.user ?? "",
      author?.host ?? "", author?.actor ?? "", change.what, change.collection ?? "", change.key ?? "",
    ]
  }
}
