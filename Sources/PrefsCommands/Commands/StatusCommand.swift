import ArgumentParser
import Coffer
import CofferMaintenance

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The command `prefs status`.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show statistics of a store, for people and for monitoring.",
    discussion: """
      Shows sizes, counts, the last commit and its author, the next expiry, and items due for renewal. Nothing is \
      verified; use `prefs doctor` for that. With --json, prints one object with stable members.

      Examples:
        prefs status
        prefs status --json
      """)

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    let (status, counts, problem) = try session.using(try session.openForReading()) { database in
      (try database.status(), try database.makeConnection().read { try Counts($0) }, database.recordProblem)
    }
    try StandardOutput.write(json ? self.json(status, counts, problem) + "\n" : text(status, counts, problem))
  }

  private struct Counts {
    let collections: Int
    let keys: Int
    let lastCommit: Commit?
    let nextExpiry: Date?
    let overdue: Int
    let nextDue: Date?

    init(_ transaction: borrowing ReadTransaction) throws {
      collections = try transaction.allCollections().count
      keys = try transaction.session.count(in: nil)
      let snapshot = try transaction.snapshot()
      lastCommit = snapshot == 0 ? nil : try transaction.changes(since: snapshot - 1)?.last
      nextExpiry = try transaction.nextExpiry()
      let due = try transaction.itemsDue(before: .distantFuture)
      overdue = due.count { ($0.due ?? .distantFuture) <= Date() }
      nextDue = due.first?.due
    }
  }

  /// - Parameter problem: What is wrong with the record of the newest state.
  private func text(_ status: DatabaseStatus, _ counts: Counts, _ problem: String?) -> String {
    var table = Table()
    table.add(["store", DisplayText.escapingControls(status.path)])
    table.add([
      "holds",
      DisplayText.count(counts.keys, "key", "keys") + " in "
        + DisplayText.count(counts.collections, "collection", "collections"),
    ])
    table.add([
      "size",
      "\(DisplayText.byteCount(status.pageCount * status.pageSize)), and "
        + "\(DisplayText.byteCount(status.log.byteCount)) of log",
    ])
    var last = "\(status.snapshot)"
    if let time = counts.lastCommit?.time { last += ", \(Timestamp.text(time))" }
    if let author = counts.lastCommit?.author { last += ", \(DisplayText.escapingControls(author.description))" }
    table.add(["last commit", last])
    if let expiry = counts.nextExpiry { table.add(["next expiry", Timestamp.text(expiry)]) }
    if let due = counts.nextDue {
      let overdue = counts.overdue == 0 ? "" : ", \(counts.overdue) overdue"
      table.add(["to be renewed", "from \(Timestamp.text(due)) on\(overdue)"])
    }
    table.add(["opens with", DisplayText.count(status.slots.count, "slot", "slots")])
    if let problem { table.add(["record", DisplayText.escapingControls(problem)]) }
    return table.lines().joined()
  }

  private func json(_ status: DatabaseStatus, _ counts: Counts, _ problem: String?) -> String {
    func time(_ date: Date?) -> String { date.map { JSONText.quoted(Timestamp.text($0)) } ?? "null" }
    return JSONText.object([
      ("path", JSONText.quoted(status.path)), ("store", JSONText.quoted(status.storeID)),
      ("format", "\(status.formatVersion)"), ("collections", "\(counts.collections)"), ("keys", "\(counts.keys)"),
      ("bytes", "\(status.pageCount * status.pageSize)"), ("logBytes", "\(status.log.byteCount)"),
      ("snapshot", "\(status.snapshot)"), ("lastCommit", time(counts.lastCommit?.time)),
      ("lastAuthor", counts.lastCommit?.author.map(ChangeText.json) ?? "null"), ("nextExpiry", time(counts.nextExpiry)),
      ("nextDue", time(counts.nextDue)), ("overdue", "\(counts.overdue)"), ("slots", "\(status.slots.count)"),
      ("epochs", "\(status.epochCount)"), ("recordProblem", problem.map(JSONText.quoted) ?? "null"),
    ])
  }
}
