import ArgumentParser
import CofferFleet
import PrefsCommands

/// The command `prefs fleet leave`.
struct LeaveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leave",
    abstract: "Forget the fleet: the store keeps its settings, and shares them no longer.",
    discussion: """
      The carrier is not asked. The member stays in the fleet's list until an admin removes it.

      Examples:
        prefs fleet leave
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let status = try await fleet.status()
      try await fleet.leave()
      one.common.note(
        "left the fleet \"\(status.fleet)\". An admin takes the member off its list: "
          + "prefs fleet remove \(status.member)")
    }
  }
}
