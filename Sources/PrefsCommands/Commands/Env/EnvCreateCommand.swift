import ArgumentParser
import Coffer

/// The command `prefs env create`.
struct EnvCreateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Make an environment, which holds nothing yet.",
    discussion: """
      Everything shows from the collection until it is set in the environment. Where the collection is sealed, the environment \
      is, too, which needs the vault; where it keeps history, the environment does within the same limits.

      Examples:
        prefs env create web@staging
        prefs env create staging --from web
      """)

  @Argument(help: "COLLECTION@NAME, or NAME with --from.")
  var name: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The collection that shows behind it.", valueName: "collection"),
    completion: Completions.collections)
  var from: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let environment = try environment()
    let isMade = try Session(common).write { transaction in
      let isMade = try transaction.makeEnvironment(environment)
      if isMade, try transaction.numberOfKeys(inCollection: environment.parent) == 0 {
        common.note("\(KeyReference.describe(environment.parent)) holds nothing yet.")
      }
      return isMade
    }
    guard isMade else {
      throw Failure(.conflict, "\(KeyReference.describe(environment.collection)) is there already.")
    }
  }

  private func environment() throws -> CollectionEnvironment {
    guard let parent = from.map(CommandArguments.value) else { return try EnvCommand.environment(name) }
    let name = CommandArguments.value(name)
    guard let named = CollectionEnvironment(collection: name) else {
      return try EnvCommand.environment("\(parent)@\(name)")
    }
    guard named.parent.utf8.elementsEqual(parent.utf8) else {
      throw Failure(
        .usage,
        "\(named.collection) is an environment of \(KeyReference.describe(named.parent)), and not of "
          + "\(KeyReference.describe(parent)).")
    }
    return named
  }
}
