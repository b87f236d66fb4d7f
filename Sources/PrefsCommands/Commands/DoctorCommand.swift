import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs doctor`.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check the file of a store for damage and open permissions.",
    discussion: """
      Checks the permissions of the store, its key file and their folders, the key slots, both copies of the envelope, and \
      the log; authenticates every page, decodes every value, including earlier ones, and every declaration, and measures how random \
      the bytes on disk are. Sealed values are opened if the vault's key is named or was kept by `prefs unlock`. The administrator's \
      files in /etc/coffer are read, too. In a store above 64 MiB, pages and values are checked only with --deep. The exit code is 7 if \
      there is a problem; notes do not change it. If the store no longer opens, doctor names what is damaged. The store is not changed.

      Every command refuses a store in your data folder that is older than the one last used there, or another one: someone may \
      have put back an earlier copy, or exchanged the file. If that was intended, --accept-older accepts it. If the record of the newest state is none, doctor \
      removes it, and the next commit makes a new one.

      Examples:
        prefs doctor
        prefs doctor --deep --json
        prefs doctor --accept-older
      """)

  @Flag(help: "Check every page and every value, however large the store is.")
  var deep = false

  @Flag(help: "Accept a store that is older than the one last used here, or another one.")
  var acceptOlder = false

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    var options = common.ofSession
    options.acceptsOlderStore = acceptOlder
    try common.checkCollectionCount()
    let session = try CommandSession(options)
    let findings = try examine(session)
    let style = common.style
    let text = FindingsText(findings: findings)
    let answer = json ? text.json + "\n" : text.summary(style)
    if acceptOlder {
      try StandardOutput.report(answer, of: "the store is accepted, whatever was known before")
    } else {
      try StandardOutput.write(answer)
    }
    if !findings.problems.isEmpty { throw ExitCode(ExitStatus.integrity.rawValue) }
  }

  private func examine(_ session: CommandSession, isFirst: Bool = true) throws -> Findings {
    var key: KeySource?
    do {
      let database = try session.openForReading { key = $0 }
      return try session.using(database) { database in
        let vaultProblem = try VaultAccess(vault: database.vault, session: session).problemOfUnlocking()
        return try Findings(
          of: database, key: key, vaultProblem: vaultProblem, deep: deep, mends: true, progress: ProgressBar(common))
      }
    } catch CofferError.rootKeyUnverified where isFirst {
      // Others have replaced the root key since it was opened: the new one opens it.
      return try examine(session, isFirst: false)
    } catch let error as CofferError where error.exitStatus == .integrity || error.isOfSQLite {
      let bar = ProgressBar(common)
      defer { bar.finish() }
      // If the envelope is damaged, too, only the error can be reported.
      let report = try? key.map { key in
        try Database.verifyPages(at: session.path, key: key) { bar.show($0, of: "checking") }
      }
      return Findings(path: session.path, problem: error.description, report: report)
    }
  }
}

extension CofferError {
  /// Whether SQLite refused what a store holds.
  fileprivate var isOfSQLite: Bool { if case .sqlite = self { true } else { false } }
}
