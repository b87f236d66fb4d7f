import ArgumentParser
import Coffer

/// The command `prefs restore-store`.
struct RestoreStoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore-store",
    abstract: "Replace the store by a backup.",
    discussion: """
      The backup is kept, and its copy opens with the same keys. A copy of the previous store is kept beside it as \
      STORE-replaced-1 or the next free number. If other programs have the store open, the command is refused; with \
      --force, they switch to the new store by themselves, except those that opened it with a passphrase, which must open \
      it again.

      A copy of the store's file, unlike one made by `prefs backup`, opens with the keys of its time, and a collection may \
      have been sealed since. What such a copy brings back is named, and confirmed on a terminal or with --accept-keys.

      Examples:
        prefs backup monday.coffer
        prefs restore-store monday.coffer
        prefs restore-store monday.coffer --force
      """)

  @Argument(help: "The backup.", completion: .file())
  var backup: String

  @Flag(help: "Restore even while other programs have the store open.")
  var force = false

  @Flag(help: "Do not ask about keys and unsealed collections that the backup brings back.")
  var acceptKeys = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    let backup = CommandArguments.value(backup)
    if OutputFile.isPart(backup, ofStore: session.path) {
      throw Failure(.usage, "\(backup) is the store itself; nothing was changed.")
    }
    let lookup = KeyLookup(options: session.options, store: backup)
    let earlier = try lookup.open(try Database.slots(at: backup)) { key in
      do {
        return try Database.restore(at: session.path, from: backup, key: key, force: force, confirm: confirm)
      } catch CofferError.busy where !force {
        throw Failure(
          .busy,
          "other programs have \(session.path) open. End them, or make them switch to the backup with --force; "
            + "nothing was changed.")
      }
    }
    common.note("\(session.path) is now a copy of \(backup)." + (earlier.map { " The previous store is \($0)." } ?? ""))
  }

  /// Asks whether what was taken back or sealed since may come back.
  private func confirm(_ keys: RestoredKeys) throws {
    var sentences = keys.slots.map { "\(SlotText.describe($0)) opens the store again." }
    if keys.bringsBackRootKey {
      sentences.append("The root key from before the last rotation is back: anyone who had a slot then has it.")
    }
    sentences += keys.unsealed.map { "\(KeyReference.describe($0)) is not sealed any more." }
    let what = sentences.joined(separator: " ")
    if acceptKeys { return common.note("warning: \(what)") }
    let answer = common.noInput ? nil : try Terminal.confirm("\(what) Restore the backup?")
    guard let answer else {
      throw Failure(
        .usage, "\(what) Confirm with --accept-keys; there is no terminal to ask on. Nothing was changed.")
    }
    guard answer else { throw Failure(.other, "nothing was changed.") }
  }
}
