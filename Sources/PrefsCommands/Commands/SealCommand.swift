import ArgumentParser
import Coffer

/// The command `prefs seal`.
struct SealCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "seal",
    abstract: "Seal a collection: only the vault opens its values.",
    discussion: """
      The values of a sealed collection are encrypted one by one with the key of the vault, which stays locked while the \
      store is open; `prefs unlock` unlocks it for a while. Names of keys stay readable to anyone who can open the store. \
      Sealing the first collection creates the vault and asks for its passphrase. Environments of the collection are \
      sealed with it. Existing values are sealed, their history is erased and no longer kept, and the store is vacuumed so that no plaintext is left.

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
    let session = try CommandSession(common, in: [named])
    let name = named.name
    try session.using(try session.open()) { database in
      // Before a vault is created for it.
      if let note = try database.makeConnection().read({ try KeyReference.emptyNote(name, $0) }) { common.note(note) }
      let keepsHistory = try database.makeConnection().read { try $0.historyLimits(forCollection: name) != nil }
      let isNewVault = try unlock(database, session)
      do {
        try database.seal(collection: name)
      } catch let error as CofferError where isNewVault {
        throw error.after(
          "The vault is created, but \(DisplayText.collection(name)) is not sealed", next: "Seal it then.")
      }
      let (count, environments) = try database.makeConnection().read { transaction in
        (try transaction.numberOfKeys(inCollection: name), try transaction.environments(of: name, areSealed: true))
      }
      let others = environments.isEmpty ? "" : ", with \(environments.joined(separator: ", "))"
      for (place, name) in try database.makeConnection().read({ try Self.plainNames(of: name, $0) }) {
        Message.error(
          "\(place) has the value of \(name) in plaintext, as another name of the setting: seal its collection, too, or end "
            + "the former name.")
      }
      common.note("sealed \(DisplayText.collection(name)), \(DisplayText.count(count, "key", "keys"))\(others).")
      if keepsHistory {
        common.note(
          "its history was erased, and is not kept any more. To keep it from now on, run: "
            + CommandHint.text("history \(ShellWord.option("--keep", name))"))
      }
      session.noteCopies()
    }
  }

  /// The other names of settings in a sealed collection that have their values outside of it, with those settings.
  private static func plainNames(
    of collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> [(SettingPlace, SettingPlace)] {
    try transaction.allKeys(inCollection: collection).flatMap { key in
      try transaction.otherNames(ofKey: key, inCollection: collection).filter { place in
        try !transaction.isSealed(collection: place.collection.string)
          && transaction.hasObject(forKey: place.key.string, inCollection: place.collection.string)
      }.map { ($0, SettingPlace(key, in: collection)) }
    }
  }

  /// - Returns: Whether the vault was created here.
  private func unlock(_ database: Database, _ session: CommandSession) throws -> Bool {
    let vault = database.vault
    guard try !vault.exists() else {
      if stretching.areGiven {
        throw Failure(
          .usage,
          "the vault exists already. To change how its passphrase is stretched, run: "
            + CommandHint.text("key change --vault"))
      }
      _ = try VaultAccess(vault: vault, session: session).unlock(with: vaultKey.source(session.options))
      return false
    }
    let hash = try stretching.hash()
    try database.checkRewritable()
    try vault.create(key: vaultKey.sourceForNewVault(session.lookup), stretching: hash)
    common.note(
      "created the vault. If its key is lost, so are its values. To add another one, run: "
        + CommandHint.text("key add --vault"))
    return true
  }
}
