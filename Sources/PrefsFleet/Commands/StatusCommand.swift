import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet status`.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the state of this store in its fleets.",
    discussion: """
      Asks the carrier whether there are newer commits, and pulls none. Values in the shared collections that violate a declaration, \
      by the fleet or by a program of this host, are listed. With --json, prints one object per fleet with stable members; \
      condition is inStep, stale, behind, waiting (changes made here are not pushed yet, or a sealed collection waits), offline, full or \
      stopped; waiting has the collections that are not exchanged, each with its reason: consent, vaultLocked, notSealedHere or \
      notSealedInFleet.

      Examples:
        prefs fleet status
        prefs fleet status --json
      """)

  @Flag(help: "Print a JSON object for each fleet.")
  var json = false

  @OptionGroup var options: FleetOptions

  mutating func run() async throws {
    try await options.withFleets(isReading: true) { fleets in
      var output = ""
      for fleet in fleets {
        let status = try await fleet.status()
        let standing = await Standing(fleet, status)
        let findings = try await fleet.findings()
        output += json ? Self.json(status, standing, findings) + "\n" : Self.text(status, standing, findings)
      }
      try StandardOutput.write(output)
    }
  }

  /// The state of a fleet compared with its carrier.
  private struct Standing {
    let word: String
    private var hasHeld = false
    var reason: String?

    init(_ fleet: Fleet, _ status: FleetStatus) async {
      do {
        let isInStep = try await fleet.isInStep()
        let isUnpushed = status.role.mayWrite && status.unpushedCount + status.unpushedDeclarationCount > 0
        let waits = isUnpushed || !status.held.isEmpty
        hasHeld = !status.held.isEmpty
        word = !isInStep ? "behind" : status.isStale ? "stale" : waits ? "waiting" : "inStep"
      } catch {
        reason = "\(error)"
        switch error {
        case CarrierError.unreachable: word = "offline"
        case CarrierError.full: word = "full"
        default: word = "stopped"
        }
      }
    }

    var text: String {
      switch word {
      case "inStep": "in step"
      case "stale": "stale: the last commit is old, and the carrier may withhold later ones"
      case "waiting" where hasHeld: "what is sealed waits, see above; the others are in step"
      case "waiting":
        "changes made here are not pushed yet; push them with \(CommandHint.text("fleet sync")), which says what keeps them here"
      case "behind": "there are newer commits; take them with \(CommandHint.text("fleet sync"))"
      default: "\(word): \(reason ?? "")"
      }
    }
  }

  private static func text(_ status: FleetStatus, _ standing: Standing, _ findings: [String]) -> String {
    var table = Table()
    func add(_ name: String, _ text: String) { table.add([name, DisplayText.escapingControls(text)]) }
    add("fleet", status.fleet)
    add("carrier", status.carrier)
    add("this host", "\(status.member), \(status.role)")
    if !status.isAdmitted { add("joining", "only reads until an admin's host has synced") }
    let sealed = Set(status.sealedCollections)
    let shared = status.collections.map { sealed.contains($0) ? "\($0) (sealed)" : $0 }
    let names = shared.isEmpty ? "nothing" : shared.joined(separator: ", ")
    add("shares", names + (status.hasAllCollections ? "" : "; this host was invited to no others"))
    if !status.unaccepted.isEmpty {
      add("waits", "\(status.unaccepted.joined(separator: ", ")); take with \(CommandHint.text("fleet accept"))")
    }
    for wait in status.held { add("waits", wait.text) }
    add("state", standing.text)
    let by = status.committer.isEmpty ? "a former member" : status.committer
    add("last commit", "\(status.commit)" + (status.committed.map { ", by \(by), \(Timestamp.text($0))" } ?? ""))
    if let age = status.greatestAge { add("greatest age", Lifetime(seconds: age.components.seconds).text) }
    add("last in step", status.lastInStep.map(Timestamp.text) ?? "never")
    // A reader's changes never leave its host.
    let name = status.role == .reader ? "changed only here" : "not pushed yet"
    var unpushed = DisplayText.count(status.unpushedCount, "setting", "settings")
    if status.unpushedDeclarationCount > 0 {
      unpushed += ", " + DisplayText.count(status.unpushedDeclarationCount, "declaration", "declarations")
    }
    add(name, unpushed)
    let hint = status.conflictCount == 0 ? "" : "; see \(CommandHint.text("fleet conflicts"))"
    add("conflicts", "\(status.conflictCount)\(hint)")
    if let twin = status.twin { add("twin", twin.text(of: status.member)) }
    for finding in findings { add("bad here", finding) }
    return table.lines().joined()
  }

  private static func json(_ status: FleetStatus, _ standing: Standing, _ findings: [String]) -> String {
    JSONText.object([
      ("fleet", JSONText.quoted(status.fleet)), ("carrier", JSONText.quoted(status.carrier)),
      ("member", JSONText.quoted(status.member)), ("role", JSONText.quoted("\(status.role)")),
      ("admitted", "\(status.isAdmitted)"),
      ("collections", JSONText.array(status.collections.map(JSONText.quoted))),
      ("allCollections", "\(status.hasAllCollections)"),
      ("sealed", JSONText.array(status.sealedCollections.map(JSONText.quoted))),
      ("waiting", JSONText.array(status.waits.map(\.json))),
      ("condition", JSONText.quoted(standing.word)), ("reason", standing.reason.map(JSONText.quoted) ?? "null"),
      ("commit", "\(status.commit)"),
      ("committed", status.committed.map { JSONText.quoted(Timestamp.text($0)) } ?? "null"),
      ("committer", JSONText.quoted(status.committer)),
      ("greatestAge", status.greatestAge.map { "\($0.components.seconds)" } ?? "null"),
      ("lastInStep", status.lastInStep.map { JSONText.quoted(Timestamp.text($0)) } ?? "null"),
      ("unpushed", "\(status.unpushedCount)"),
      ("unpushedDeclarations", "\(status.unpushedDeclarationCount)"), ("conflicts", "\(status.conflictCount)"),
      ("twin", status.twin.map(json) ?? "null"),
      ("findings", JSONText.array(findings.map(JSONText.quoted))),
    ])
  }

  private static func json(_ twin: FleetTwin) -> String {
    JSONText.object([
      ("certain", "\(twin.isCertain)"), ("firstFound", JSONText.quoted(Timestamp.text(twin.firstFound))),
      ("lastFound", JSONText.quoted(Timestamp.text(twin.lastFound))), ("host", JSONText.quoted(twin.host)),
    ])
  }
}
