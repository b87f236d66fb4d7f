import ArgumentParser
import Coffer

/// The command `prefs destroy`.
struct DestroyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "destroy",
    abstract: "Remove the store, for good.",
    discussion: """
      Needs no key, so that a store nobody can open goes, too. NAME is the file name of the store: anyone who types it means \
      this one. Store, log and shared memory are removed; key files and backups stay. A store that is in use, and a file \
      that is no store, are refused.

      Examples:
        prefs destroy --confirm settings.coffer
        prefs destroy --store old.coffer --confirm old.coffer
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The file name of the store, to say that you mean it.", valueName: "name"))
  var confirm: String

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try Session(common)
    let name = session.path.split(separator: "/", omittingEmptySubsequences: true).last.map(String.init) ?? ""
    guard CommandArguments.value(confirm).utf8.elementsEqual(name.utf8) else {
      throw Failure(.usage, "the store is called \"\(name)\", and --confirm says something else; nothing was removed.")
    }
    try Database.remove(at: session.path)
    common.note("removed the store \(session.path).")
    let keyFile =
      try common.keyFile ?? (common.app == nil ? Environment.variable("PREFS_KEY_FILE") : nil)
      ?? StoreLocation.defaultKeyFile(common.ofSession)
    if KeyFile.exists(at: keyFile) {
      common.note("the key file \(keyFile) stays; other stores and backups may open with it.")
    }
  }
}
