import ArgumentParser
import Coffer

/// The command `prefs backup`.
struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy the store, as it is now, to a new file.",
    discussion: """
      Other programs may read and write meanwhile; the copy is a consistent snapshot. It opens with the same key as the \
      store, unless --new-key-file names another one; other key slots are not copied. FILE must not exist yet.

      Examples:
        prefs backup settings-2026-01-31.coffer
        prefs backup /media/stick/settings.coffer --new-key-file /media/stick/key
      """)

  @Argument(help: ArgumentHelp("Where to write the copy.", valueName: "file"), completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp("Let this key file open the copy; it is created if missing.", valueName: "path"),
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
