import ArgumentParser
import Foundation

/// Coffer's front door beside its peers: the rows P1 to P4 of performance.md.
///
/// In each round every contender does each work once, and another one begins; what counts are the ratios of the rounds.
/// A harness that measures one contender after another would compare the machine's moods.
@main
struct ProxyBenchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure Coffer's front door beside its peers.",
    subcommands: [OpenOnce.self, MeasureMemory.self, CommitNowAndThen.self])

  /// By the name that `--rows` takes.
  private static let rows: [(name: String, make: @Sendable (Folder) throws -> Row)] = [
    ("p1", HotReads.row), ("p1k", TypedReads.row), ("p1c", CoherentReads.row), ("p1t", ThreadedReads.row),
    ("p2", Sets.row),
    ("p2f", Flushes.row), ("p3", DurableCommits.row), ("p4", Opening.row), ("p4m", Opening.memoryRow),
  ]

  @Option(help: "Which rows to measure, with commas between them: p1, p1k, p1c, p1t, p2, p2f, p3, p4, p4m.")
  var rows: String?

  @Option(help: "How often everything is measured.")
  var rounds = 7

  @Option(help: "Measure this contender alone; for a profiler.")
  var only: String?

  @Option(help: "Where the stores are to lie while they are measured.")
  var folder = FileManager.default.temporaryDirectory.path

  private var chosenNames: [String] {
    rows?.lowercased().split(separator: ",").map(String.init) ?? Self.rows.map(\.name)
  }

  func validate() throws {
    for name in chosenNames where !Self.rows.contains(where: { $0.name == name }) {
      throw ValidationError("There is no row \(name).")
    }
    guard rounds > 0 else { throw ValidationError("At least one round is needed.") }
  }

  func run() throws {
    let folder = try Self.homeFolder(in: folder)
    defer { folder.remove() }
    var results = Results()
    for (name, make) in Self.rows where chosenNames.contains(name) {
      FileHandle.standardError.write(Data("\(name): setting up\n".utf8))
      let row = try make(folder)
      results.add(row)
      try measure(row, named: name, into: &results)
    }
    print("\(rounds) rounds, \(ProcessInfo.processInfo.activeProcessorCount) processors.\n")
    if only == nil { print(results.goalTable() + "\n") }
    print(results.figureTable())
  }

  private func measure(_ row: Row, named name: String, into results: inout Results) throws {
    // The first round warms up.
    for round in 0...rounds {
      FileHandle.standardError.write(Data("\(name): round \(round) of \(rounds)\n".utf8))
      for (_, contenders) in row.works {
        let measurements = contenders.filter { only == nil || only == $0.series.contender }
        for index in measurements.indices {
          let measurement = measurements[(index + round) % measurements.count]
          let value = try measurement.measure(round)
          if round > 0 { results.add(value, to: measurement.series) }
        }
      }
    }
  }

  private static let folderVariable = "COFFER_BENCHMARK_FOLDER"

  /// The folder of this run, which is its `$HOME` too: `UserDefaults` has its files there.
  ///
  /// Foundation looks at the environment when it is loaded, so the program starts once more.
  private static func homeFolder(in parent: String) throws -> Folder {
    if let path = ProcessInfo.processInfo.environment[folderVariable] { return Folder(existing: path) }
    let folder = try Folder(inside: parent, named: "coffer-benchmark")
    setenv(folderVariable, folder.path, 1)
    setenv("HOME", folder.path, 1)
    unsetenv("XDG_CONFIG_HOME")
    guard let program = Bundle.main.executablePath else { throw Failure(reason: "where is this program?") }
    var arguments = ([program] + CommandLine.arguments.dropFirst()).map { strdup($0) } + [nil]
    execv(program, &arguments)
    throw Failure(reason: "the program cannot be started again: \(String(cString: strerror(errno)))")
  }
}
