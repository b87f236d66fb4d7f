import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet sync`.
struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Pull and push changes once.",
    discussion: """
      For cron, on a host that does not need changes immediately. A value larger than the carrier allows is not shared; \
      the others are, and the exit code is 11. Declarations of settings travel with the collections. A value from elsewhere that \
      violates one is applied, and programs keep their last good one; it is named, and the exit code is 8. \
      If the last commit is older than the fleet allows, the exit code is 18: the carrier may withhold later ones. If another host acts \
      as this one, because a machine or its store was copied, the exit code is 9. A collection that is sealed waits while the vault is locked, \
      and the exit code is 6; so does one that is sealed in the fleet and not here, or here and not in the fleet, with the exit code 11. \
      All others are exchanged.

      Examples:
        prefs fleet sync
        prefs fleet sync -q || logger "the fleet is out of step"
        prefs fleet sync --json
      """)

  @Flag(help: "Print a JSON object for each fleet.")
  var json = false

  @OptionGroup var options: FleetOptions

  mutating func run() async throws {
    try await options.withFleets { fleets in
      var reports: [SyncReport] = []
      var findings: [String] = []
      var stale: [FleetStatus] = []
      var twins: [String] = []
      var held: [FleetWait] = []
      for fleet in fleets {
        let report = try await fleet.sync()
        let found = try await fleet.findings()
        reports.append(report)
        findings += found
        if json {
          let text = report.json(of: try await fleet.status(), findings: found) + "\n"
          try StandardOutput.report(text, of: "the settings are in step with the fleet")
        }
        options.common.note(report.text)
        let status = try await fleet.status()
        if status.isStale { stale.append(status) }
        if let twin = status.twin, twin.isCertain { twins.append(twin.text(of: status.member)) }
        held += status.held
        if !status.unaccepted.isEmpty {
          let names = status.unaccepted.map(DisplayText.escapingControls).joined(separator: ", ")
          options.common.note(
            "shared since this host joined, and not taken until \(CommandHint.text("fleet accept")): \(names)")
        }
        if !status.isAdmitted, status.role.mayWrite {
          options.common.note("this host only reads until an admin's host has synced, and so seen that it has joined.")
        }
        if status.role == .reader, status.unpushedCount > 0 {
          let count = DisplayText.count(status.unpushedCount, "setting stays", "settings stay")
          options.common.note("\(count) on this host only: a reader's changes are not shared.")
        }
      }
      for report in reports { try report.checkProblems() }
      try Fleet.check(findings)
      if let twin = twins.first { throw Failure(.conflict, twin, details: Array(twins.dropFirst())) }
      if let status = stale.first, let date = status.committed {
        throw Failure(
          .unreachable,
          "the last commit of the fleet \"\(status.fleet)\" is from \(Timestamp.text(date)), older than it allows: the carrier may "
            + "withhold later ones, or no host that writes has synced.")
      }
      if let wait = held.first {
        throw Failure(wait.exitStatus, "\(wait.text).", details: held.dropFirst().map { "\($0.text)." })
      }
    }
  }
}

/// The command `prefs fleet accept`.
struct AcceptCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept",
    abstract: "Agree to collections that were shared after this host joined.",
    discussion: """
      A host takes and gives the collections that the fleet shared when it joined. One that an admin shares later waits until \
      it is accepted; `prefs fleet status` lists it. Then its contents are merged.

      Examples:
        prefs fleet accept flags
      """)

  @Argument(help: "The collections.", completion: Completions.collections)
  var collections: [String]

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let report = try await fleet.accept(collections: collections)
      one.common.note(report.text)
      try await fleet.noteWaits(one.common)
      try report.checkProblems()
    }
  }
}

/// The command `prefs fleet accept-rollback`.
struct AcceptRollbackCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-rollback",
    abstract: "Continue with a carrier that was rolled back, and push what it has lost.",
    discussion: """
      For a carrier that was intentionally restored from a backup. Every host that has seen a later state reports it, and \
      stops until this command is run there; run it first on the host with the latest state. A reader cannot push: it \
      keeps its values until someone sets them again.

      Examples:
        prefs fleet accept-rollback
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let report = try await fleet.acceptRollback()
      one.common.note(report.text)
      try await fleet.noteWaits(one.common)
      try report.checkProblems()
      try await Fleet.check(fleet.findings())
    }
  }
}

extension SyncReport {
  /// The result, in a sentence.
  var text: String {
    let conflicts =
      conflictCount == 0
      ? ""
      : ", and settled \(DisplayText.count(conflictCount, "conflict", "conflicts")); see \(CommandHint.text("fleet conflicts"))"
    let recovered =
      recoveredCount == 0
      ? ""
      : """
       This host had made \(DisplayText.count(recoveredCount, "change", "changes")) of these itself: its store was put back \
      to an earlier state, or is in use on two hosts.
      """
    let pulled = DisplayText.count(pulledCount, "setting", "settings")
    return "pulled \(pulled), pushed \(pushedCount)\(conflicts).\(recovered)"
  }

  func json(of status: FleetStatus, findings: [String]) -> String {
    JSONText.object([
      ("fleet", JSONText.quoted(status.fleet)), ("pulled", "\(pulledCount)"), ("pushed", "\(pushedCount)"),
      ("conflicts", "\(conflictCount)"), ("recovered", "\(recoveredCount)"),
      ("waiting", JSONText.array(status.waits.map(\.json))),
      ("problems", JSONText.array(problems.map(JSONText.quoted))),
      ("findings", JSONText.array(findings.map(JSONText.quoted))),
    ])
  }

  /// - Throws: ``Failure`` if something could not be shared.
  func checkProblems() throws {
    guard let first = problems.first else { return }
    throw Failure(.refused, first, details: Array(problems.dropFirst()))
  }
}

extension FleetTwin {
  /// What is known, and what to do, in sentences.
  func text(of member: String) -> String {
    let place = host.isEmpty ? "" : " on \(host)"
    let found = "changes that this store has not made were found as its own, last\(place), \(Timestamp.text(lastFound))"
    guard isCertain else { return "\(found): the store was put back to an earlier state, or is in use on two hosts." }
    return """
      another host acts as \(member): \(found). A machine or its store was copied. Nothing is lost, and \
      both take each other's changes for their own. Remove the member on an admin's host, with \
      \(CommandHint.text("fleet remove NAME")); then let each of the two leave, with \(CommandHint.text("fleet leave")), and join with \
      an invitation of its own.
      """
  }
}

extension Fleet {
  /// - Throws: ``Failure`` if a value violates its declaration, or a declaration cannot be read.
  static func check(_ findings: [String]) throws {
    guard !findings.isEmpty else { return }
    throw Failure(
      .format, "the store is in step, and not all of it fits its declarations.", details: findings.map { "  \($0)" })
  }
}
