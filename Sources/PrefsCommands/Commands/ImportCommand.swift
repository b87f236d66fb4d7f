import ArgumentParser
import Coffer

/// The command `prefs import`.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Read settings from a file of another program.",
    discussion: """
      Sets everything that the file holds in one transaction: all of it, or nothing. Items that are there already and not in \
      the file stay; with --replace they go, in the collections that the file has. The store is made when there is none.

      The formats are sqlite, what `prefs export` writes; yapdatabase; and sqlcipher, either of them encrypted by SQLCipher, \
      whose library has to be installed.

      Examples:
        prefs import settings.sqlite --format sqlite
        prefs import app.sqlite --format yapdatabase --dry-run
        prefs import app.db --format sqlcipher --source-passphrase-fd 3 3<passphrase
      """)

  @Argument(help: "The file.", completion: .file())
  var file: String

  @Option(help: "What it is.")
  var format: Format

  @Flag(help: "What becomes of items that the file does not have.")
  var mode: Mode = .merge

  @Flag(help: "Change nothing; say what would change.")
  var dryRun = false

  @Option(help: ArgumentHelp("Read the passphrase of the file from this file descriptor.", valueName: "n"))
  var sourcePassphraseFd: Int32?

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// What can be read.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case sqlite, yapdatabase, sqlcipher
  }

  /// What becomes of the items that are there.
  enum Mode: String, EnumerableFlag {
    case merge, replace

    static func help(for value: Mode) -> ArgumentHelp? {
      value == .merge
        ? "Keep the items that the file does not have."
        : "Remove the items that the file does not have, in the collections that it has."
    }
  }

  mutating func validate() throws {
    if sourcePassphraseFd != nil, format != .sqlcipher {
      throw ValidationError("--source-passphrase-fd is for the format sqlcipher.")
    }
    if let sourcePassphraseFd, sourcePassphraseFd < 0 {
      throw ValidationError("A file descriptor is not negative.")
    }
    if let sourcePassphraseFd, sourcePassphraseFd == common.passphraseFd || sourcePassphraseFd == common.keyFd {
      throw ValidationError("Each secret needs a file descriptor of its own.")
    }
  }

  mutating func run() throws {
    let session = try Session(common)
    if OutputFile.isPart(file, ofStore: session.path) { throw Failure(.usage, "\(file) is the store itself.") }
    let source = try source()
    let bar = ProgressBar(isShown: !common.quiet && Terminal.isTerminal(2))
    let database = try dryRun ? session.openForTrial() : session.openOrCreate()
    let report = try session.using(database) { database in
      defer { bar.finish() }
      return try session.unlocking(database) {
        try database.importPlain(
          from: file, format: source, mode: mode == .merge ? .merge : .replace, isDryRun: dryRun
        ) { bar.show($0, of: "importing") }
      }
    }
    let text = ImportText(report: report, isDryRun: dryRun)
    try StandardOutput.write(json ? text.json + "\n" : text.summary)
  }

  private func source() throws -> PlainImportFormat {
    switch format {
    case .sqlite: .sqlite
    case .yapdatabase: .yapDatabase
    case .sqlcipher: .sqlCipher(passphrase: try passphrase())
    }
  }

  private func passphrase() throws -> SecretBytes {
    if let descriptor = sourcePassphraseFd {
      return try FileDescriptor.readSecret(descriptor, named: "file descriptor \(descriptor)", droppingNewline: true)
    }
    let way = "Give the passphrase of \(file) with --source-passphrase-fd."
    guard !common.noInput else { throw Failure(.keyUnavailable, "--no-input forbids asking. \(way)") }
    do {
      return try Terminal.secret("Passphrase for \(DisplayText.escapingControls(file)): ")
    } catch let failure as Failure {
      throw Failure(.keyUnavailable, "\(failure.message) \(way)")
    }
  }
}
