import ArgumentParser
import Coffer

/// The command `prefs seal`.
struct SealCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "seal",
    abstract: "Seal a collection: its values open with the vault only.",
    discussion: """
      The values of a sealed collection are encrypted one by one under the key of the vault, which stays locked while the \
      store is open: `prefs unlock` unlocks it for a while. Names stay readable to anyone who opens the store. The first \
      collection makes the vault, and asks for a passphrase for it. What is in the collection is sealed, its history \
      dropped, and the store vacuumed, so that no plaintext is left.

      Examples:
        prefs seal tokens
        prefs seal tokens --vault-key-file /media/stick/vault-key
        prefs set --secret tokens/github
      """)

  @Argument(help: "The collection.", completion: Completions.collections)
  var collection: String

  @OptionGroup var vaultKey: VaultKeyOptions

  @OptionGroup var stretching: StretchingOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let named = try common.inEnvironment(CommandArguments.value(collection))
    let session = try Session(common, in: [named])
    let name = named.name
    try session.using(try session.open()) { database in
      try unlock(database, session)
      try database.seal(collection: name)
      let count = try database.makeConnection().read { try $0.numberOfKeys(inCollection: name) }
      common.note("sealed \(KeyReference.describe(name)), \(DisplayText.count(count, "key", "keys")).")
    }
  }

  private func unlock(_ database: Database, _ session: Session) throws {
    let vault = database.vault
    guard try !vault.exists() else {
      if stretching.areGiven {
        throw Failure(.usage, "the vault is there already. prefs key change --vault stretches its passphrase anew.")
      }
      _ = try VaultAccess(vault: vault, session: session).unlock(with: vaultKey.source(session.options))
      return
    }
    let hash = try stretching.hash()
    try vault.create(key: vaultKey.sourceForNewVault(session.lookup), stretching: hash)
    common.note(
      "made the vault. Without what unlocks it nobody reads its values again: prefs key add --vault adds more.")
  }
}
