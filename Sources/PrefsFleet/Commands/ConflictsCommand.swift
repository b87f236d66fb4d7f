import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet conflicts`.
struct ConflictsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "List settings that were changed concurrently on two hosts, or resolve them.",
    discussion: """
      Each line has a number, the setting, the version of the losing value in its history, the two members, and the time. \
      `prefs history` shows that value. If hosts disagree on how a setting is declared, "declaration" stands for the version. \
      --restore sets the value again, or declares the setting as it lost, as a new change that is shared; --dismiss removes the \
      conflict from the list and changes nothing else.

      Examples:
        prefs fleet conflicts
        prefs fleet conflicts --restore 3
        prefs fleet conflicts --dismiss 4 --dismiss 5
      """)

  @Flag(help: "Print a JSON array.")
  var json = false

  @Option(help: ArgumentHelp("Set the setting to the losing value of this conflict.", valueName: "n"))
  var restore: [Int64] = []

  @Option(help: ArgumentHelp("Remove this conflict from the list.", valueName: "n"))
  var dismiss: [Int64] = []

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if json, !(restore.isEmpty && dismiss.isEmpty) { throw ValidationError("--json is only for the list.") }
  }

  mutating func run() async throws {
    let isList = restore.isEmpty && dismiss.isEmpty
    try await one.withFleet(isReading: isList) { fleet in
      let conflicts = try await fleet.conflicts()
      if isList {
        if conflicts.isEmpty { one.common.note("there are no unresolved conflicts that this host has merged.") }
        return try StandardOutput.write(
          json ? JSONText.array(conflicts.map(Self.json)) + "\n" : Self.text(conflicts))
      }
      func conflict(_ id: Int64) throws -> FleetConflict {
        guard let conflict = conflicts.first(where: { $0.id == id }) else { throw FleetError.conflictNotFound(id: id) }
        return conflict
      }
      // Check all of them before any change.
      let (restored, dismissed) = (try restore.map(conflict), try dismiss.map(conflict))
      for conflict in restored { try await fleet.restore(conflict) }
      for conflict in dismissed { try await fleet.dismiss(conflict) }
    }
  }

  private static func text(_ conflicts: [FleetConflict]) -> String {
    var table = Table()
    for conflict in conflicts {
      let winner = conflict.winner.isEmpty ? "a removal" : conflict.winner
      table.add([
        "\(conflict.id)", DisplayText.escapingControls(KeyText.of(conflict.key, in: conflict.collection)),
        conflict.isDeclaration ? "declaration" : "version \(conflict.version)",
        DisplayText.escapingControls("\(conflict.loser) lost to \(winner)"),
        Timestamp.text(conflict.time),
      ])
    }
    return table.lines(rightAligned: [0]).joined()
  }

  private static func json(_ conflict: FleetConflict) -> String {
    JSONText.object([
      ("conflict", "\(conflict.id)"), ("collection", JSONText.quoted(conflict.collection)),
      ("key", JSONText.quoted(conflict.key)),
      ("what", JSONText.quoted(conflict.isDeclaration ? "declaration" : "value")),
      ("version", conflict.isDeclaration ? "null" : "\(conflict.version)"),
      ("winner", conflict.winner.isEmpty ? "null" : JSONText.quoted(conflict.winner)),
      ("loser", JSONText.quoted(conflict.loser)), ("time", JSONText.quoted(Timestamp.text(conflict.time))),
    ])
  }
}
