import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet log`.
struct LogCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Show the last change of each shared setting, newest first.",
    discussion: """
      Each line has the time, by the clock of the host that made the change, its member, the kind of change, the setting, \
      and how often it has changed. It shows what this store knows, without changes it has not pushed yet. `prefs log` \
      shows who made a change there.

      Examples:
        prefs fleet log
        prefs fleet log --limit 20 --json
      """)

  @Option(help: ArgumentHelp("Show at most this many.", valueName: "n"))
  var limit: Int?

  @Flag(help: "Print a JSON array.")
  var json = false

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if let limit, limit < 0 { throw ValidationError("--limit must be 0 or more.") }
  }

  mutating func run() async throws {
    try await one.withFleet(isReading: true) { fleet in
      let changes = Array(try await fleet.changes().prefix(limit ?? .max))
      try StandardOutput.write(json ? JSONText.array(changes.map(Self.json)) + "\n" : Self.text(changes))
    }
  }

  private static func text(_ changes: [FleetChange]) -> String {
    var table = Table()
    if !changes.isEmpty { table.add(["TIME", "MEMBER", "WHAT", "KEY", "CHANGE"]) }
    for change in changes {
      table.add([
        Timestamp.text(change.time),
        DisplayText.escapingControls(change.member.isEmpty ? "a former member" : change.member),
        change.word,
        DisplayText.escapingControls(KeyText.of(change.key, in: change.collection)), "\(change.number)",
      ])
    }
    return table.lines().joined()
  }

  private static func json(_ change: FleetChange) -> String {
    JSONText.object([
      ("time", JSONText.quoted(Timestamp.text(change.time))),
      ("member", change.member.isEmpty ? "null" : JSONText.quoted(change.member)),
      ("what", JSONText.quoted(change.word)),
      ("collection", JSONText.quoted(change.collection)), ("key", JSONText.quoted(change.key)),
      ("change", "\(change.number)"),
    ])
  }
}

extension FleetChange {
  /// What was done.
  fileprivate var word: String {
    if isDeclaration { return isRemoval ? "undeclared" : "declared" }
    return isRemoval ? "removed" : "set"
  }
}
