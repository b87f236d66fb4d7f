import ArgumentParser
import Coffer

/// The command `prefs backup`.
struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy the store, as it is now, into a new one.",
    discussion: """
      Others may read and write meanwhile; the copy holds one moment. What opens the store opens the copy, unless \
      --new-key-file names another key; its other key slots are not copied. Nothing may be at FILE yet.

      Examples:
        prefs backup settings-2026-01-31.coffer
        prefs backup /media/stick/settings.coffer --new-key-file /media/stick/key
      """)

  @Argument(help: ArgumentHelp("Where the copy is made.", valueName: "file"), completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp("Let this key file open the copy; it is made when it is missing.", valueName: "path"),
    completion: .file())
  var newKeyFile: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if file.isEmpty { throw ValidationError("The copy needs a path.") }
    if newKeyFile == "" { throw ValidationError("--new-key-file needs a path.") }
  }

  mutating func run() throws {
    let session = try Session(common)
    // Before any prompt or file is made.
    if StoreLocation.isTaken(file) { throw CofferError.storeExists(path: file) }
    var used: KeySource?
    let database = try session.openForReading { used = $0 }
    try session.using(database) { database in
      let newKey = try newKeyFile.map { try KeyLookup(options: common.ofSession, store: file).newKeyFile($0) }
      guard let key = newKey ?? used else { return }
      try ProgressBar.during("copying", common) { try database.backup(to: file, key: key, progress: $0) }
    }
    common.note("copied the store to \(file).")
  }
}
