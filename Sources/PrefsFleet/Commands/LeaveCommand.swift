import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet leave`.
struct LeaveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leave",
    abstract: "Leave the fleet: the store keeps its settings and stops sharing them.",
    discussion: """
      The carrier is not contacted. The member stays in the list of the fleet until an admin removes it. The last admin is \
      refused (exit code 11) without --force: no one could invite or remove members afterwards.

      Examples:
        prefs fleet leave
        prefs fleet leave --force
      """)

  @Flag(name: .shortAndLong, help: "Leave even as the last admin.")
  var force = false

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let status = try await fleet.status()
      var next = "An admin can remove the member: prefs fleet remove \(ShellWord.quoted(status.member))"
      do {
        try await fleet.leave()
      } catch FleetError.lastAdminLeaves where force {
        try await fleet.leave(evenAsLastAdmin: true)
        next = "It has no admin any more, who could invite or remove members."
      }
      one.common.note("left the fleet \"\(status.fleet)\". \(next)")
    }
  }
}
