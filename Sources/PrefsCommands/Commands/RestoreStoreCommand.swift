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
      it again. A store whose file has other names, hard links, is not replaced.

      A backup made by `prefs backup` opens with one key: the other slots, and a recovery key, do not open it. A copy of the \
      store's file opens with the keys of its time. The vault comes back as it was, and a collection may have been sealed \
      since. Keys that open the store or its vault again, keys that no longer do, and collections that are not sealed any more \
      are named, and confirmed on a terminal or with --accept-keys; so is a store that cannot be compared, because it is damaged, \
      the key in use does not open it, or it is missing and was newer than the backup. If the store is changed while that is \
      asked, it is asked again. A backup that is not whole is refused: `prefs salvage` reads what is readable of it.

      Examples:
        prefs backup monday.coffer
        prefs restore-store monday.coffer
        prefs restore-store monday.coffer --force
      """)

  @Argument(help: "The backup.", completion: .file())
  var backup: String

  @Flag(help: "Restore even while other programs have the store open.")
  var force = false

  @Flag(help: "Do not ask about keys and seals that differ in the backup.")
  var acceptKeys = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    let backup = CommandArguments.value(backup)
    if backup == "-" {
      throw Failure(.usage, "a backup is restored from a file: write standard input to one first. Nothing was changed.")
    }
    if OutputFile.isPart(backup, ofStore: session.path) {
      throw Failure(.usage, "\(backup) is the store itself; nothing was changed.")
    }
    let former = try? Database.storeID(at: session.path)
    let lookup = KeyLookup(options: session.options, store: backup)
    let earlier = try namingBackup {
      try lookup.open(try Database.slots(at: backup)) { key in
        do {
          return try Database.restore(at: session.path, from: backup, key: key, force: force, confirm: confirm)
        } catch CofferError.busy where !force {
          throw Failure(
            .busy,
            "other programs have \(session.path) open. End them, or make them switch to the backup with --force; "
              + "nothing was changed.")
        }
      }
    }
    common.note("\(session.path) is now a copy of \(backup)." + (earlier.map { " The previous store is \($0)." } ?? ""))
    noteKeyFile(session.options)
    // `prefs lock` finds a key by the store that is there, and this one may be put back.
    if let former, try former != Database.storeID(at: session.path) {
      try UnlockState(storeID: former, options: common.ofSession).lockFormer(
        after: "the store that was here is replaced")
    }
    if let former, try former == Database.storeID(at: session.path) { noteRecord(ofStoreAt: session.path) }
  }

  /// Says where commands look for the key, if this one was named a key file and there is none.
  private func noteKeyFile(_ options: SessionOptions) {
    guard let keyFile = options.keyFile, options.store == nil, Environment.variable("PREFS_KEY_FILE") == nil,
      let expected = try? StoreLocation.defaultKeyFile(options), !KeyFile.exists(at: expected)
    else { return }
    common.note(
      "commands look for the key at \(expected), where there is none: copy \(keyFile) there, or go on naming it with --key-file."
    )
  }

  /// Runs `body`, whose errors of a store that is missing or damaged are about the backup.
  private func namingBackup<R>(_ body: () throws -> R) throws -> R {
    let backup = CommandArguments.value(backup)
    do {
      return try body()
    } catch CofferError.storeNotFound {
      throw Failure(.storeNotFound, "there is no backup at \(backup). Check the path; nothing was changed.")
    } catch CofferError.damaged(let part, let reason) {
      throw Failure(
        .integrity,
        "the backup \(backup) is damaged in its \(part): \(reason). Nothing was changed. Restore another one, or save what "
          + "is readable of this one: prefs salvage \(ShellWord.option("-d", backup)) -o FILE")
    }
  }

  /// Says what the owner of the store has to do: the record of its newest state is the owner's, and speaks of the former one.
  private func noteRecord(ofStoreAt path: String) {
    guard let owner = Database.otherOwner(ofStoreAt: path) else { return }
    common.note(
      "the store belongs to user \(owner), whose record of its newest state, if there is one, is from before. If commands of "
        + "that user end with exit code 17, run as that user: \(CommandHint.text("doctor --accept-older")), and start again "
        + "what has the store open.")
  }

  /// Asks whether what opens the store, and what is sealed, may change.
  private func confirm(_ keys: RestoredKeys) throws {
    let what = Self.sentences(keys).joined(separator: " ")
    if acceptKeys { return common.note("warning: \(what)") }
    let answer = common.noInput ? nil : try Terminal.confirm("\(what) Restore the backup?")
    guard let answer else {
      throw Failure(
        .usage, "\(what) Confirm with --accept-keys; there is no terminal to ask on. Nothing was changed.")
    }
    guard answer else { throw Failure(.other, "nothing was changed.") }
  }

  private static func sentences(_ keys: RestoredKeys) -> [String] {
    var sentences: [String] = []
    switch keys.obstacle {
    case nil: break
    case .rolledBack(let known, _) where keys.isMissing && known.commit == nil:
      sentences = [
        "There is no store any more, and the one last used here was under another root key than the backup, usually a later one. "
          + "Its vault and what is sealed cannot be compared."
      ]
    case .rolledBack(let known, let found) where keys.isMissing:
      sentences = [
        "There is no store any more, and the one last used here was at \(known); the backup is at \(found). What was sealed, and "
          + "which keys were added or removed since, cannot be compared."
      ]
    case .anotherStore where keys.isMissing:
      sentences = [
        "There is no store any more, and the backup is no copy of the one last used here. Its keys, its vault and what is sealed "
          + "cannot be compared."
      ]
    case .rolledBack, .anotherStore:
      sentences = [
        "The store that is replaced is not the one last used here, but an older or another one. What has changed in that since, in "
          + "its keys and in what is sealed, cannot be compared."
      ]
    case .wrongKey:
      sentences = [
        "The key in use does not open the store that is replaced: someone may have locked it out. Its vault, its root key "
          + "and what is sealed cannot be compared."
      ]
    case let obstacle?:
      sentences = [
        "The store that is replaced does not open, so its vault, its root key and what is sealed cannot be compared. "
          + obstacle.failure
      ]
    }
    sentences += keys.slots.opening.map { "\(SlotText.describe($0)) opens the store again." }
    sentences += keys.slots.lost.map { "\(SlotText.describe($0)) does not open it any more." }
    if keys.bringsBackRootKey {
      sentences.append("The root key from before the last rotation is back: anyone who had a slot then has it.")
    }
    sentences += keys.vaultSlots.opening.map { "\(SlotText.describe($0)) of the vault opens it again." }
    sentences += keys.vaultSlots.lost.map { "\(SlotText.describe($0)) of the vault does not open it any more." }
    if keys.changesVaultKey {
      sentences.append("The vault is under another key than the one last used: anyone who could unlock it then has it.")
    }
    return sentences + keys.unsealed.map { "\(DisplayText.collection($0)) is not sealed any more." }
  }
}
