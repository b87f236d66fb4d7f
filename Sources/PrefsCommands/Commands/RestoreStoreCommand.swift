import ArgumentParser
import Coffer

/// The command `prefs restore-store`.
struct RestoreStoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore-store",
    abstract: "Replace the store by a backup.",
    discussion: """
      The backup is kept, and its copy opens with the same keys. The previous store is kept beside it, with its log, as \
      STORE-replaced-1 or the next free number. If other programs have the store open, the command is refused; with \
      --force, they switch to the new store by themselves, except those that opened it with a passphrase, which must open \
      it again.

      Examples:
        prefs backup monday.coffer
        prefs restore-store monday.coffer
        prefs restore-store monday.coffer --force
      """)

  @Argument(help: "The backup.", completion: .file())
  var backup: String

  @Flag(help: "Restore even while other programs have the store open.")
  var force = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try Session(common)
    let backup = CommandArguments.value(backup)
    if OutputFile.isPart(backup, ofStore: session.path) {
      throw Failure(.usage, "\(backup) is the store itself; nothing was changed.")
    }
    let lookup = KeyLookup(options: session.options, store: backup)
    let earlier = try lookup.open(try Database.slotKinds(at: backup)) { key in
      do {
        return try Database.restore(at: session.path, from: backup, key: key, force: force)
      } catch CofferError.busy where !force {
        throw Failure(
          .busy,
          "other programs have \(session.path) open. End them, or make them switch to the backup with --force; "
            + "nothing was changed.")
      }
    }
    common.note("\(session.path) is now a copy of \(backup)." + (earlier.map { " The previous store is \($0)." } ?? ""))
  }
}
