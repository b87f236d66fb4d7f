import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet run`.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Keep the store in sync with its fleets, until ended.",
    discussion: """
      Changes are exchanged immediately in both directions. While the carrier is unreachable, programs keep using the \
      store, and this command keeps trying. One process per host is enough: all programs on the host are notified of the \
      changes it receives.

      A sealed collection is exchanged while the vault is unlocked: with --vault-key-file, --vault-key-fd or PREFS_VAULT_KEY_FILE until the \
      end, else from `prefs unlock` to `prefs lock`. Meanwhile it waits, and all others are exchanged.

      SIGTERM and SIGINT end it with exit code 0. It reports readiness and status to systemd (Type=notify); the unit \
      prefs-fleet@USER runs it for the store of a user.

      Examples:
        prefs fleet run
        systemctl enable --now prefs-fleet@web
      """)

  @OptionGroup var options: FleetOptions

  mutating func run() async throws {
    let signals = try EndingSignals()
    let supervisor = try ServiceSupervisor()
    try await options.withFleetsAndVault { fleets, vault in
      let follower = VaultFollower(vault)
      defer { withExtendedLifetime(follower) {} }
      let journal = Journal(options.common, supervisor, fleetCount: fleets.count)
      try await withThrowingTaskGroup(of: Ended.self) { group in
        defer { group.cancelAll() }
        for fleet in fleets {
          let states = try await fleet.states()
          group.addTask {
            // Synchronized, but another value may have come that is bad here.
            for await status in states { await journal.note(status, findings: (try? fleet.findings()) ?? []) }
            return .nothing
          }
          group.addTask {
            try await fleet.run()
            return .nothing
          }
        }
        group.addTask {
          await signals.first()
          return .signal
        }
        while let ended = try await group.next() { if case .signal = ended { return } }
      }
      supervisor.notify("STOPPING=1")
    }
  }

  private enum Ended { case signal, nothing }
}

/// Reports each change of the fleets' state, to people on standard error, and to systemd.
private actor Journal {
  private let common: CommonOptions
  private let supervisor: ServiceSupervisor
  private let fleetCount: Int
  private var states: [String: (state: String, problems: [String])] = [:]

  init(_ common: CommonOptions, _ supervisor: ServiceSupervisor, fleetCount: Int) {
    (self.common, self.supervisor, self.fleetCount) = (common, supervisor, fleetCount)
  }

  func note(_ status: FleetStatus, findings: [String]) {
    guard let state = Self.text(status) else { return }
    let earlier = states[status.carrier]
    let twin = status.twin.flatMap { $0.isCertain ? [$0.text(of: status.member)] : nil } ?? []
    let problems = status.problems + findings + twin
    states[status.carrier] = (state, problems)
    if earlier?.state != state { common.note("\(status.fleet): \(state)") }
    for problem in problems where earlier?.problems.contains(problem) != true { Message.error(problem) }
    guard earlier?.state != state, states.count == fleetCount else { return }
    let text = states.values.map(\.state).sorted().joined(separator: "; ")
    supervisor.notify("READY=1\nSTATUS=\(DisplayText.escapingControls(text))")
  }

  private static func text(_ status: FleetStatus) -> String? {
    switch status.condition {
    case .unknown: nil
    case .inStep: "in step"
    case .waiting: "waiting: " + status.held.map(\.text).joined(separator: "; ")
    case .stale(let date):
      "stale: the last commit is from \(Timestamp.text(date)), and the carrier may withhold later ones"
    case .offline(let reason): "offline: \(reason)"
    case .full(let reason): "full: \(reason)"
    case .stopped(let reason): "stopped: \(reason)"
    case .left: "left"
    }
  }
}
