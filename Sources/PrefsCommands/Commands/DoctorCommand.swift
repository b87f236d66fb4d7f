import ArgumentParser
import Coffer

/// The command `prefs doctor`.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check a store.",
    discussion: """
      Looks at permissions, key slots and both copies of the envelope; reads and authenticates every page, decodes every \
      value, and measures how random the bytes on the disk are. Pages and values of a store above 64 MiB are checked with \
      --deep only. The exit code is 7 when there is a problem. Nothing is changed.

      Examples:
        prefs doctor
        prefs doctor --deep --json
      """)

  @Flag(help: "Check every page and every value, however large the store is.")
  var deep = false

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try Session(common)
    let findings: Findings
    do {
      findings = try session.using(try session.openForReading()) {
        try Findings(of: $0, deep: deep, progress: progress())
      }
    } catch let error as CofferError where error.exitStatus == .integrity {
      findings = Findings(path: session.path, problem: error.description)
    }
    let style = Style(isOn: common.color.applies(to: 1))
    try StandardOutput.write(json ? findings.json + "\n" : findings.text(style))
    if !findings.problems.isEmpty { throw ExitCode(ExitStatus.integrity.rawValue) }
  }

  private func progress() -> ProgressBar {
    ProgressBar(isShown: !common.quiet && Terminal.isTerminal(2))
  }
}
