import ArgumentParser
import Foundation

/// Compares Coffer with its peers: every row in one run.
///
/// In each round every contender does each work once, starting with a different one; the ratios of the rounds count.
/// Measuring one contender after another would compare the states of the machine.
@main
struct Benchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure Coffer beside its peers.",
    subcommands: [
      OpenOnce.self, MeasureMemory.self, CommitNowAndThen.self, CommitStamps.self, UseStore.self, DeclareOnce.self,
    ])

  /// By name, as in `--rows`; a new row is a function here.
  private static let rows: [(name: String, make: @Sendable (Benchmark, Folder) throws -> Row)] = [
    ("p1", { try HotReads.row($1) }), ("p1k", { try TypedReads.row($1) }), ("p1c", { try CoherentReads.row($1) }),
    ("p1t", { try ThreadedReads.row($1) }), ("p2", { try Sets.row($1) }), ("p2f", { try Flushes.row($1) }),
    ("p3", { try DurableCommits.row($1) }), ("p4", { try Opening.row($1) }), ("p4m", { try Opening.memoryRow($1) }),
    ("p5", { try Tables.readingRow($1, $0.storageBenchmark, $0.tableRows) }),
    ("p5b", { try Tables.fillingRow($1, $0.storageBenchmark, $0.tableRows) }),
    ("p6", { try WholeProcesses.row($1, $0.prefs) }), ("start", { try Starts.row($1, $0.prefs) }),
    ("p7", { try Latency.row($1) }), ("waits", { try Waits.row($1) }),
    ("keys", { try Keys.row($1) }), ("sealing", { try Sealing.row($1) }), ("listeners", { try Listeners.row($1) }),
    ("lists", { try Lists.row($1) }), ("declared", { try DeclaredSettings.row($1) }),
    ("growth", { try Growth.row($1) }), ("processes", { try Processes.row($1) }),
  ]

  @Option(help: "Which rows to measure, with commas between them: \(rows.map(\.name).joined(separator: ", ")).")
  var rows: String?

  @Option(help: "How often everything is measured.")
  var rounds = 7

  @Option(help: "Measure this contender alone; for a profiler.")
  var only: String?

  @Option(help: "Where the stores are to lie while they are measured.")
  var folder = FileManager.default.temporaryDirectory.path

  @Option(help: "How many rows the tables of p5 and p5b have.")
  var tableRows = 1_000_000

  @Option(help: "The program StorageBenchmark, for p5 and p5b.")
  var storageBenchmark = ".build/release/StorageBenchmark"

  @Option(help: "The program prefs, for p6 and start.")
  var prefs = ".build/release/prefs"

  @Option(help: "The folder of this package, which gets RESULTS.md and the charts when all rows were measured.")
  var package: String?

  private var chosenNames: [String] {
    let names = rows?.lowercased().split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
    return names.isEmpty ? Self.rows.map(\.name) : names
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
      Self.log("\(name): setting up")
      let row = try make(self, folder)
      results.add(row)
      try measure(row, named: name, into: &results)
      try row.finish()
    }
    let report = Report(results: results, rounds: rounds)
    print("\(rounds) rounds, \(ProcessInfo.processInfo.activeProcessorCount) processors.\n")
    if only == nil { print(report.targets() + "\n") }
    print(report.figures() + "\n")
    print(report.curves(picturesIn: nil))
    guard let package, only == nil, Set(chosenNames) == Set(Self.rows.map(\.name)) else { return }
    let command = "make bench" + (rounds == 7 ? "" : " ROUNDS=\(rounds)")
    try report.write(into: package, environment: Machine.facts(package: package, command: command))
  }

  private func measure(_ row: Row, named name: String, into results: inout Results) throws {
    for round in 0...rounds {
      Self.log("\(name): round \(round) of \(rounds)")
      for (_, contenders) in row.works {
        let measurements = contenders.filter { measurement in
          (only == nil || only == measurement.series.contender) && round <= measurement.lastRound
            && (round > 0 || measurement.warmsUp)
        }
        for index in measurements.indices {
          let measurement = measurements[(index + round) % measurements.count]
          let value = try measurement.measure(round)
          if round > 0 { results.add(value, to: measurement.series, round: round) }
        }
      }
    }
  }

  private static let start = ContinuousClock.now

  /// Progress, after how many seconds.
  private static func log(_ progress: String) {
    let seconds = (ContinuousClock.now - start).components.seconds
    FileHandle.standardError.write(Data("\(seconds) s  \(progress)\n".utf8))
  }

  private static let folderVariable = "COFFER_BENCHMARK_FOLDER"

  /// The folder of this run, also its `$HOME`, where `UserDefaults` has its files.
  ///
  /// Foundation reads the environment when it is loaded, so the program restarts itself.
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
