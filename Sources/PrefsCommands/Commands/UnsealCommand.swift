import ArgumentParser
import Coffer

/// The command `prefs unseal`.
struct UnsealCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unseal",
    abstract: "Unseal a collection.",
    discussion: """
      Its values, and those of its environments, are then stored like all others: anyone who can open the store can read \
      them.

      Examples:
        prefs unseal tokens
      """)

  @Argument(help: "The collection.", completion: Completions.collections)
  var collection: String

  @OptionGroup var vaultKey: VaultKeyOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let named = try common.inEnvironment(CommandArguments.value(collection))
    let session = try CommandSession(common, in: [named])
    let name = named.name
    try session.using(try session.open()) { database in
      let (isSealed, environments) = try database.makeConnection().read { transaction in
        (try transaction.isSealed(collection: name), try transaction.environments(of: name, areSealed: true))
      }
      guard isSealed || !environments.isEmpty else {
        throw Failure(.notFound, "\(DisplayText.collection(name)) is not sealed.")
      }
      _ = try VaultAccess(vault: database.vault, session: session).unlock(with: vaultKey.source(session.options))
      try database.unseal(collection: name)
      let others = environments.isEmpty ? "" : ", with \(environments.joined(separator: ", "))"
      common.note("unsealed \(DisplayText.collection(name))\(others).")
    }
  }
}
