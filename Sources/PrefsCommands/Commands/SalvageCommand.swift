import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs salvage`.
struct SalvageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract: "Recover what is readable from a damaged store.",
    discussion: """
      Writes everything that still authenticates to a new store, and lists what is lost. The damaged store is only read; \
      no program may write to it meanwhile. The new store opens with the same key, unless --new-key-file names another \
      one. The exit code is 7 if something is lost; the new store is written in any case.

      Examples:
        prefs salvage -o saved.coffer
        prefs salvage --store damaged.coffer -o saved.coffer --json
      """)

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("The new store; the file must not exist.", valueName: "path"), completion: .file())
  var output: String

  @Option(
    help: ArgumentHelp("Let this key file open the new store; it is created if missing.", valueName: "path"),
    completion: .file())
  var newKeyFile: String?

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if output == "" { throw ValidationError("--output needs a path.") }
    if newKeyFile == "" { throw ValidationError("--new-key-file needs a path.") }
  }

  mutating func run() throws {
    let session = try CommandSession(common)
    let report = try ProgressBar.during("reading", common) {
      try session.salvage(to: output, newKeyFile: newKeyFile, progress: $0)
    }
    let text = SalvageText(report: report, source: session.path, output: output)
    let style = common.style
    try StandardOutput.report(
      json ? text.json + "\n" : text.summary(style), of: "what is readable is written to \(output)")
    if !report.isComplete { throw ExitCode(ExitStatus.integrity.rawValue) }
  }
}
