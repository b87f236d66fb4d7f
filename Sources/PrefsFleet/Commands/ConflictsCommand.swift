import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet conflicts`.
struct ConflictsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "List settings that were changed on two hosts at once, or settle them.",
    discussion: """
      Each line has a number, the setting, the version in its history of the value that lost, who lost to whom, and when. \
      `prefs history` shows that value. --restore sets it again, as a new change, which travels; --dismiss takes the conflict off the list and \
      leaves things as they are.

      Examples:
        prefs fleet conflicts
        prefs fleet conflicts --restore 3
        prefs fleet conflicts --dismiss 4 --dismiss 5
      """)

  @Flag(help: "Print a JSON array.")
  var json = false

  @Option(help: ArgumentHelp("Set the setting to the value that lost in this conflict.", valueName: "n"))
  var restore: [Int64] = []

  @Option(help: ArgumentHelp("Take this conflict off the list.", valueName: "n"))
  var dismiss: [Int64] = []

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if json, !(restore.isEmpty && dismiss.isEmpty) { throw ValidationError("--json goes with the list.") }
  }

  mutating func run() async throws {
    let isList = restore.isEmpty && dismiss.isEmpty
    try await one.withFleet(isReading: isList) { fleet in
      let conflicts = try await fleet.conflicts()
      if isList {
        return try StandardOutput.write(
          json ? JSONText.array(conflicts.map(Self.json)) + "\n" : Self.text(conflicts))
      }
      func conflict(_ id: Int64) throws -> FleetConflict {
        guard let conflict = conflicts.first(where: { $0.id == id }) else { throw FleetError.conflictNotFound(id: id) }
        return conflict
      }
      // All of them are there, or nothing is done.
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
        "\(conflict.id)", DisplayText.escapingControls(KeyReference.text(conflict.key, in: conflict.collection)),
        "version \(conflict.version)", DisplayText.escapingControls("\(conflict.loser) lost to \(winner)"),
        Timestamp.text(conflict.time),
      ])
    }
    return table.lines(rightAligned: [0]).joined()
  }

  private static func json(_ conflict: FleetConflict) -> String {
    JSONText.object([
      ("conflict", "\(conflict.id)"), ("collection", JSONText.quoted(conflict.collection)),
      ("key", JSONText.quoted(conflict.key)), ("version", "\(conflict.version)"),
      ("winner", conflict.winner.isEmpty ? "null" : JSONText.quoted(conflict.winner)),
      ("loser", JSONText.quoted(conflict.loser)), ("time", JSONText.quoted(Timestamp.text(conflict.time))),
    ])
  }
}
