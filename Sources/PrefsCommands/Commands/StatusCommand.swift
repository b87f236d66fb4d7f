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
    abstract: "Show sizes, counts and dates of a store, for monitoring.",
    discussion: """
      Shows sizes, counts, the last commit and its author, the next expiry, items due for renewal, and whether the vault is \
      unlocked, and until when. Nothing is verified; use `prefs doctor` for that. With --json, prints one object with stable members.

      Examples:
        prefs status
        prefs status --json
      """)

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    let (status, counts, vault, problem) = try session.using(try session.openForReading()) { database in
      (
        try database.status(), try database.makeConnection().read { try Counts($0) },
        try VaultState(VaultAccess(vault: database.vault, session: session)), database.recordProblem
      )
    }
    let output = json ? self.json(status, counts, vault, problem) + "\n" : text(status, counts, vault, problem)
    try StandardOutput.write(output)
  }

  /// Whether commands open sealed collections without asking.
  private enum VaultState {
    case none
    case locked
    case unlocked(until: Date)

    init(_ access: VaultAccess) throws {
      guard try access.vault.exists() else {
        self = .none
        return
      }
      self = try access.state().end().map { .unlocked(until: $0) } ?? .locked
    }
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
      let number = try transaction.commitNumber()
      lastCommit = number == 0 ? nil : try transaction.changes(since: number - 1)?.last
      nextExpiry = try transaction.nextExpiry()
      let due = try transaction.itemsDue(before: .distantFuture)
      overdue = due.count { ($0.due ?? .distantFuture) <= Date() }
      nextDue = due.first?.due
    }
  }

  /// - Parameter problem: What is wrong with the record of the newest state.
  private func text(_ status: DatabaseStatus, _ counts: Counts, _ vault: VaultState, _ problem: String?) -> String {
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
    var last = "\(status.lastCommit)"
    if let time = counts.lastCommit?.time { last += ", \(Timestamp.text(time))" }
    if let author = counts.lastCommit?.author { last += ", \(DisplayText.escapingControls(author.description))" }
    table.add(["last commit", last])
    if let expiry = counts.nextExpiry { table.add(["next expiry", Timestamp.text(expiry)]) }
    if let due = counts.nextDue {
      let overdue = counts.overdue == 0 ? "" : ", \(counts.overdue) overdue"
      table.add(["to be renewed", "from \(Timestamp.text(due)) on\(overdue)"])
    }
    switch vault {
    case .none: break
    case .locked: table.add(["vault", "locked"])
    case .unlocked(let end): table.add(["vault", "unlocked until \(Timestamp.text(end))"])
    }
    table.add(["opens with", DisplayText.count(status.slots.count, "slot", "slots")])
    if let problem { table.add(["record", DisplayText.escapingControls(problem)]) }
    return table.lines().joined()
  }

  private func json(_ status: DatabaseStatus, _ counts: Counts, _ vault: VaultState, _ problem: String?) -> String {
    func time(_ date: Date?) -> String { date.map { JSONText.quoted(Timestamp.text($0)) } ?? "null" }
    let (state, end): (String, Date?) =
      switch vault {
      case .none: ("none", nil)
      case .locked: ("locked", nil)
      case .unlocked(let end): ("unlocked", end)
      }
    return JSONText.object([
      ("path", JSONText.quoted(status.path)), ("store", JSONText.quoted(status.storeID)),
      ("format", "\(status.formatVersion)"), ("collections", "\(counts.collections)"), ("keys", "\(counts.keys)"),
      ("bytes", "\(status.pageCount * status.pageSize)"), ("logBytes", "\(status.log.byteCount)"),
      ("snapshot", "\(status.lastCommit)"), ("lastCommit", time(counts.lastCommit?.time)),
      ("lastAuthor", counts.lastCommit?.author.map(ChangeText.json) ?? "null"), ("nextExpiry", time(counts.nextExpiry)),
      ("nextDue", time(counts.nextDue)), ("overdue", "\(counts.overdue)"), ("slots", "\(status.slots.count)"),
      ("epochs", "\(status.epochCount)"), ("vault", JSONText.quoted(state)), ("unlockedUntil", time(end)),
      ("recordProblem", problem.map(JSONText.quoted) ?? "null"),
    ])
  }
}
