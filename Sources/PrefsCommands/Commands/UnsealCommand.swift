import ArgumentParser
import Coffer

/// The command `prefs unseal`.
struct UnsealCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unseal",
    abstract: "Unseal a collection.",
    discussion: """
      Its values are then stored like all others: anyone who can open the store can read them.

      Examples:
        prefs unseal tokens
      """)

  @Argument(help: "The collection.", completion: Completions.collections)
  var collection: String

  @OptionGroup var vaultKey: VaultKeyOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let named = try common.inEnvironment(CommandArguments.value(collection))
    let session = try Session(common, in: [named])
    let name = named.name
    try session.using(try session.open()) { database in
      guard try database.makeConnection().read({ try $0.isSealed(collection: name) }) else {
        throw Failure(.notFound, "\(KeyReference.describe(name)) is not sealed.")
      }
      _ = try VaultAccess(vault: database.vault, session: session).unlock(with: vaultKey.source(session.options))
      try database.unseal(collection: name)
      common.note("unsealed \(KeyReference.describe(name)).")
    }
  }
}
