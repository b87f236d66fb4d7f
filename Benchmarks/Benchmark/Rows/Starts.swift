import Foundation

/// How long commands of `prefs` take, from their start to their end, beside `age -d`.
///
/// In each round all of them run in turn, nine times; with seven rounds that makes a median of 63.
enum Starts {
  private static let work = Work(
    row: "Start", name: "a command, from start to end", unit: .milliseconds, baseline: "age -d")
  private static let turns = 9
  /// The limit, as a multiple of `age -d`.
  private static let limit = 1.35

  static func row(_ folder: Folder, _ prefs: String) throws -> Row {
    let home = Folder(existing: folder.file("start"))
    try FileManager.default.createDirectory(atPath: home.path, withIntermediateDirectories: true)
    let environment = WholeProcesses.environment(home)
    _ = try WholeProcesses.prefs(prefs, environment)
    let calls: KeyValuePairs = [
      "prefs get": ["get", "editor/theme"], "prefs get --json": ["get", "editor/theme", "--json"],
      "prefs list": ["list", "editor"], "prefs set": ["set", "editor/theme", WholeProcesses.value],
      "prefs --version": ["--version"],
    ]
    let commands =
      [try WholeProcesses.age(home, environment)]
      + calls.map { WholeProcesses.Command(name: $0.key, program: prefs, arguments: $0.value) }
    let series = try Rounds(commands, environment)
    return Row(
      measurements: commands.map { command in
        Measurement(work, command.name) { try series.milliseconds(of: command.name, round: $0) }
      },
      goals: commands.dropFirst().map {
        Goal("\($0.name), a whole process: beside age -d", at: work, $0.name, beside: "age -d", .atMost(limit))
      })
  }

  /// The medians of a round, for which all commands run in turn.
  private final class Rounds {
    private let commands: [(name: String, program: Program, arguments: [String])]
    private let environment: [String: String]
    private var last: (round: Int, medians: [String: Double])?

    init(_ commands: [WholeProcesses.Command], _ environment: [String: String]) throws {
      self.commands = try commands.map { ($0.name, try Program($0.program), $0.arguments) }
      self.environment = environment
    }

    func milliseconds(of name: String, round: Int) throws -> Double {
      if last?.round != round { last = (round, try medians()) }
      return last?.medians[name] ?? .nan
    }

    private func medians() throws -> [String: Double] {
      var times: [String: [Double]] = [:]
      for turn in 0..<turns {
        for index in commands.indices {
          let command = commands[(index + turn) % commands.count]
          let time = try command.program.time(command.arguments, environment: environment).milliseconds
          times[command.name, default: []].append(time)
        }
      }
      return times.mapValues { $0.sorted()[$0.count / 2] }
    }
  }
}
