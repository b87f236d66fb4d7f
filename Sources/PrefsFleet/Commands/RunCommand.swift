import ArgumentParser
import CofferFleet
import PrefsCommands

/// The command `prefs fleet run`.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Stay, and keep the store in step with its fleets.",
    discussion: """
      What others set is here, and what is set here is there, at once. While the carrier cannot be reached, programs go on with the \
      store as it is, and this goes on trying. One process a host is enough: all programs of the host hear of what it brings.

      SIGTERM and SIGINT end it, with the exit code 0. It tells systemd when it stands and how (Type=notify); the unit prefs-fleet@USER runs \
      it for the store of a user.

      Examples:
        prefs fleet run
        systemctl enable --now prefs-fleet@web
      """)

  @OptionGroup var options: FleetOptions

  mutating func run() async throws {
    let signals = try EndingSignals()
    let supervisor = try ServiceSupervisor()
    try await options.withFleets { fleets in
      let journal = Journal(options.common, supervisor, fleetCount: fleets.count)
      try await withThrowingTaskGroup(of: Ended.self) { group in
        defer { group.cancelAll() }
        for fleet in fleets {
          let states = try await fleet.states()
          group.addTask {
            for await status in states { await journal.note(status) }
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
      supervisor.tell("STOPPING=1")
    }
  }

  private enum Ended { case signal, nothing }
}

/// Tells how fleets stand, whenever that changes: people on standard error, and systemd.
private actor Journal {
  private let common: CommonOptions
  private let supervisor: ServiceSupervisor
  private let fleetCount: Int
  private var states: [String: (state: String, problems: [String])] = [:]

  init(_ common: CommonOptions, _ supervisor: ServiceSupervisor, fleetCount: Int) {
    (self.common, self.supervisor, self.fleetCount) = (common, supervisor, fleetCount)
  }

  func note(_ status: FleetStatus) {
    guard let state = Self.text(status.condition) else { return }
    let earlier = states[status.carrier]
    states[status.carrier] = (state, status.problems)
    if earlier?.state != state { common.note("\(status.fleet): \(state)") }
    for problem in status.problems where earlier?.problems.contains(problem) != true { Message.error(problem) }
    guard earlier?.state != state, states.count == fleetCount else { return }
    let text = states.values.map(\.state).sorted().joined(separator: "; ")
    supervisor.tell("READY=1\nSTATUS=\(DisplayText.escapingControls(text))")
  }

  private static func text(_ condition: FleetCondition) -> String? {
    switch condition {
    case .unknown: nil
    case .inStep: "in step"
    case .offline(let reason): "offline: \(reason)"
    case .stopped(let reason): "stopped: \(reason)"
    case .left: "left"
    }
  }
}
