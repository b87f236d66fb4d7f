import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs import`.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Read settings from a file of another program.",
    discussion: """
      Sets everything that the file holds in one transaction: all of it, or nothing. Items that are there already and not in \
      the file stay; with --replace they go, in the collections that the file has. The store is made when there is none.

      The format is --format, else what the file's name ends with or its contents begin like. The formats plist, json, yaml, \
      toml and env are those of `prefs export`. Their files hold collections by name; with -c, the settings of that one, as \
      what `defaults export` writes does. A secret that an export did not show stays as it is.
        plist        XML, binary or the old text form; a URL archived by UserDefaults becomes that URL.
        yaml         One document of the core schema of YAML 1.2, with timestamps and !!binary: no and off are text. Aliases \
      are followed within bounds, merge keys and other tags refused.
        toml         Dates need an offset; a day alone is its midnight in UTC.
        env          Lines NAME=value with shell quotes, export and comments; all values are text, nothing is expanded.
        sqlite       What `prefs export` writes.
        yapdatabase  A database of YapDatabase.
        sqlcipher    One of the last two, encrypted by SQLCipher, whose library has to be installed.
      A name that occurs twice, text that is not UTF-8, and a number that does not fit are exit code 8.

      Examples:
        prefs import settings.yaml
        defaults export org.example.editor - | prefs import - -c editor
        prefs import .env -c service --replace --dry-run
        prefs import settings.sqlite --format sqlite
        prefs import app.db --format sqlcipher --source-passphrase-fd 3 3<passphrase
      """)

  @Argument(help: "The file; - is standard input.", completion: .file())
  var file: String

  @Option(help: "What it is.")
  var format: Format?

  @Flag(help: "What becomes of items that the file does not have.")
  var mode: Mode = .merge

  @Flag(help: "Change nothing; say what would change.")
  var dryRun = false

  @Flag(help: "Show secrets and the values of sealed collections among what would change.")
  var reveal = false

  @Option(help: ArgumentHelp("Read the passphrase of the file from this file descriptor.", valueName: "n"))
  var sourcePassphraseFd: Int32?

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// What can be read.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case plist, json, yaml, toml, env, sqlite, yapdatabase, sqlcipher
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
    if reveal, !dryRun { throw ValidationError("--reveal goes with --dry-run.") }
    if let format, SettingsFormat(rawValue: format.rawValue) == nil {
      if file == "-" { throw ValidationError("A database cannot be read from standard input.") }
    }
  }

  // MARK: - Running

  mutating func run() throws {
    let session = try Session(common)
    if file != "-", OutputFile.isPart(file, ofStore: session.path) {
      throw Failure(.usage, "\(file) is the store itself.")
    }
    let (chosen, bytes) = try input()
    if SettingsFormat(rawValue: chosen.rawValue) == nil, common.namedCollection != nil {
      throw Failure(.usage, "A database names its collections itself; leave out -c. Nothing was changed.")
    }
    let report: PlainImportReport
    if let text = SettingsFormat(rawValue: chosen.rawValue) {
      // Before a store is made for it.
      let contents = try SettingsFile(
        bytes ?? readBytes(), format: text, named: shownName, collection: common.namedCollection)
      report = try apply(session) { database, progress in
        try database.importSettings(
          contents.settings, collections: contents.collections, mode: mode == .merge ? .merge : .replace,
          isDryRun: dryRun, progress: progress)
      }
    } else {
      let source = try source(chosen)
      report = try apply(session) { database, progress in
        try database.importPlain(
          from: file, format: source, mode: mode == .merge ? .merge : .replace, isDryRun: dryRun, progress: progress)
      }
    }
    let text = ImportText(report: report, isDryRun: dryRun, redaction: Redaction(reveals: reveal))
    // What a trial finds, and JSON, were asked for.
    if json || dryRun || !common.quiet { try StandardOutput.write(json ? text.json + "\n" : text.summary) }
  }

  private func apply(
    _ session: Session, _ body: (Database, (Double) -> Void) throws -> PlainImportReport
  ) throws -> PlainImportReport {
    try session.using(try dryRun ? session.openForTrial() : session.openOrCreate()) { database in
      try session.unlocking(database) {
        let bar = ProgressBar(common)
        defer { bar.finish() }
        return try body(database) { bar.show($0, of: "importing") }
      }
    }
  }

  // MARK: - The file

  private var shownName: String { file == "-" ? "standard input" : file }

  private func readBytes() throws -> [UInt8] {
    file == "-" ? try FileDescriptor.readAll(0, named: shownName) : try FileDescriptor.readFile(file)
  }

  /// The format, and the contents where they were read to find it.
  private func input() throws -> (format: Format, bytes: [UInt8]?) {
    if let format { return (format, nil) }
    if let format = SettingsFormat(fileName: file), let format = Format(rawValue: format.rawValue) {
      return (format, nil)
    }
    let bytes = try readBytes()
    if file != "-", bytes.starts(with: "SQLite format 3\0".utf8) { return (.sqlite, nil) }
    guard let format = SettingsFormat(contents: bytes), let format = Format(rawValue: format.rawValue) else {
      throw Failure(.usage, "\(shownName) does not tell its format. Name it with --format.")
    }
    return (format, bytes)
  }

  private func source(_ format: Format) throws -> PlainImportFormat {
    switch format {
    case .yapdatabase: .yapDatabase
    case .sqlcipher: .sqlCipher(passphrase: try passphrase())
    default: .sqlite
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
