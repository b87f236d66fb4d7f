import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet join`.
struct JoinCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "join",
    abstract: "Join a fleet with an invitation.",
    discussion: """
      The invitation is read from standard input or a file, because others can see arguments. It is then kept in the \
      encrypted store, and the file can be deleted. The fleet's settings win over existing ones in its collections; \
      `prefs fleet conflicts` lists those that lost. What the fleet does not have is shared.

      Examples:
        prefs fleet join - < web-17.invitation
        prefs fleet join /run/secrets/invitation --at etcd://etcd.internal/coffer
      """)

  @Argument(help: "The file with the invitation; - for standard input.", completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp(
      "The address of the carrier from here, if it differs from that in the invitation.", valueName: "address"))
  var at: String?

  @OptionGroup var options: FleetOptions

  mutating func validate() throws {
    if file.isEmpty { throw ValidationError("Name the file with the invitation, or - for standard input.") }
  }

  mutating func run() async throws {
    guard !file.hasPrefix("coffer-fleet-") else {
      throw Failure(
        .usage,
        "an invitation is a secret, and others can see arguments: consider it disclosed. Remove that member, "
          + "invite it again, and give the invitation to `prefs fleet join -` on standard input.")
    }
    let invitation = try Invitation(text: text())
    let carrier = try options.carrier(at: at ?? invitation.carrier)
    // Before creating a store for it.
    try await Fleet.check(invitation, at: carrier)
    try await options.withStore { database in
      let fleet = try await Fleet.join(invitation, database, at: carrier)
      let report = try await fleet.sync()
      let status = try await fleet.status()
      options.common.note(
        "joined the fleet \"\(status.fleet)\" as \(status.member), a \(status.role). "
          + "`prefs fleet run` keeps the store in sync."
          + (status.isAdmitted || !status.role.mayWrite ? "" : " It only reads until an admin's host has synced."))
      try await fleet.noteWaits(options.common)
      try report.checkProblems()
      try await Fleet.check(fleet.findings())
    }
  }

  private func text() throws -> SecretBytes {
    guard file == "-" else {
      return try FileDescriptor.readSecretFile(file, droppingNewline: true)
    }
    if !options.common.noInput, Terminal.isTerminal(0) { return try Terminal.secret("Invitation: ") }
    return try FileDescriptor.readSecret(0, named: "standard input", limit: 16 << 10, droppingNewline: true)
  }
}
