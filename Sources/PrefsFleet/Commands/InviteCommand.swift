import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The command `prefs fleet invite`.
struct InviteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Add a member, and print the invitation for its store.",
    discussion: """
      A reader receives settings; a writer also sets them; an admin also manages members. The invitation is a secret of \
      one line: anyone who has it can join as that member, once. The host that does makes keys of its own, and may set settings \
      after the next sync of an admin's host. `prefs fleet remove NAME` makes a stolen one useless.

      With -c, which can be repeated, the member gets the keys of these collections only: it cannot read the others, nor what they are called.       Without, it has all, and those that are shared later. An admin has all.

      With --many, any number of hosts read with one invitation, as with one in an image. It stays valid, and is those \
      hosts' key: only `prefs fleet remove` ends it, for all of them.

      Examples:
        prefs fleet invite web-17 --role reader -o web-17.invitation
        prefs fleet invite ci --role writer --expires 7d | ssh ci prefs fleet join -
        prefs fleet invite contractor --role writer -c web -o contractor.invitation
      """)

  @Argument(help: "The name of the member.")
  var name: String

  @Option(help: ArgumentHelp("reader, writer or admin.", valueName: "role"))
  var role: FleetRole

  @Option(
    help: ArgumentHelp(
      "The invitation expires then: a date, or a time from now, as in 7d.", valueName: "date"))
  var expires: DueDate?

  @Flag(help: "Any number of hosts may read with the invitation.")
  var many = false

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write the invitation to this new file, readable by you only; - for standard output.", valueName: "file"),
    completion: .file())
  var output = "-"

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if role == .admin, !one.common.namedCollections.isEmpty {
      throw ValidationError("An admin has all collections: leave out -c.")
    }
    if output.isEmpty { throw ValidationError("--output needs a path.") }
    if let expires, expires.date <= Date() { throw ValidationError("--expires is in the past.") }
  }

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let file = try NewOutputFile.named(output)
      do {
        let named = one.common.namedCollections
        let invitation = try await fleet.invite(
          name, role: role, collections: named.isEmpty ? nil : named, expires: expires?.date, isForMany: many)
        let undo = CommandHint.text("fleet remove", operand: name)
        try UnwrittenReport.during("\(name) is invited, and `\(undo)` takes that back") {
          try NewOutputFile.write(line: invitation.text, to: file)
        }
      } catch {
        file?.remove()
        throw error
      }
    }
    one.common.note("invited \(name), a \(role). The invitation is a secret, and is not shown again.")
  }
}

extension FleetRole: ExpressibleByArgument {
  /// The role with a name.
  public init?(argument: String) {
    guard let role = Self.allCases.first(where: { "\($0)" == argument }) else { return nil }
    self = role
  }

  /// The names of the roles.
  public static var allValueStrings: [String] { allCases.map { "\($0)" } }
}
