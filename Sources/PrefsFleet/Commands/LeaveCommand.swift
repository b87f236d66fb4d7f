import ArgumentParser
import CofferFleet
import PrefsCommands

/// The command `prefs fleet leave`.
struct LeaveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leave",
    abstract: "Leave the fleet: the store keeps its settings and stops sharing them.",
    discussion: """
      The carrier is not contacted. The member stays in the list of the fleet until an admin removes it.

      Examples:
        prefs fleet leave
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let status = try await fleet.status()
      try await fleet.leave()
      one.common.note(
        "left the fleet \"\(status.fleet)\". An admin can remove the member: "
          + "prefs fleet remove \(status.member)")
    }
  }
}
