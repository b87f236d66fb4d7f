import ArgumentParser
import Coffer

/// The command `prefs destroy`.
struct DestroyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "destroy",
    abstract: "Delete the store permanently.",
    discussion: """
      Needs no key, so it can also delete a store that no key opens. NAME is the file name of the store, typed as \
      confirmation. The store, its log, its shared memory and the keys that a TPM has sealed for it are deleted; key files and \
      backups stay. A store in use, or a file that is not a store, is refused.

      Examples:
        prefs destroy --confirm settings.coffer
        prefs destroy --store old.coffer --confirm old.coffer
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The file name of the store, as confirmation.", valueName: "name"))
  var confirm: String

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    let name = session.path.split(separator: "/", omittingEmptySubsequences: true).last.map(String.init) ?? ""
    guard CommandArguments.value(confirm).utf8.elementsEqual(name.utf8) else {
      throw Failure(.usage, "the store is called \"\(name)\", but --confirm names another one; nothing was removed.")
    }
    let storeID = try? Database.storeID(at: session.path)
    do {
      try Database.remove(at: session.path)
    } catch CofferError.busy {
      throw Failure(.busy, "other programs have \(session.path) open. End them; nothing was removed.")
    }
    // It may be put back. What else fails, this is done.
    let locking = Result {
      guard let storeID else { return }
      try UnlockState(storeID: storeID, options: common.ofSession).lockFormer(after: "the store is removed")
    }
    for isOfVault in [false, true] { TPMFile(ofStoreAt: session.path, isOfVault: isOfVault).remove() }
    common.note("removed the store \(session.path).")
    session.noteCopies()
    let keyFile =
      try common.keyFile ?? (common.app == nil ? Environment.variable("PREFS_KEY_FILE") : nil)
      ?? StoreLocation.defaultKeyFile(common.ofSession)
    if KeyFile.exists(at: keyFile) {
      common.note("the key file \(keyFile) was kept; other stores and backups may open with it.")
    }
    try locking.get()
  }
}
