import ArgumentParser
import Coffer

/// The command `prefs lock`.
struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock",
    abstract: "Lock the vault.",
    discussion: """
      This has nothing to do with settings that an administrator has locked. It wipes the key that `prefs unlock` has kept, if any, and locks the \
      vault in open pages of `prefs ui`, and in `prefs keyring`, `prefs serve` and a `prefs fleet run` that use that key or a typed passphrase: at once, or \
      before the next secret is read if their XDG_RUNTIME_DIR is another one. It asks for nothing. Another running command keeps its own copy until it ends.

      Examples:
        prefs lock
      """)

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    try UnlockState(storeID: try Database.storeID(at: session.path), options: common.ofSession).lock()
    if let owner = Database.otherOwner(ofStoreAt: session.path) {
      common.note(
        "the store belongs to user \(owner). What programs of other users have unlocked stays so, until each of them runs "
          + "`prefs lock`.")
    }
  }
}
