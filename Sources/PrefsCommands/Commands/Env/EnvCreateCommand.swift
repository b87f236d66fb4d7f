import ArgumentParser
import Coffer

/// The command `prefs env create`.
struct EnvCreateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Create an empty environment.",
    discussion: """
      All values come from the collection until they are set in the environment. An environment of a sealed collection is \
      sealed, which needs the vault; one of a collection with history keeps history within the same limits.

      Examples:
        prefs env create web@staging
        prefs env create staging --from web
      """)

  @Argument(help: "COLLECTION@NAME, or NAME with --from.")
  var name: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The collection to inherit from.", valueName: "collection"),
    completion: Completions.collections)
  var from: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let environment = try environment()
    let isMade = try CommandSession(common).write { transaction in
      let isMade = try transaction.makeEnvironment(environment.name, of: environment.parent)
      if isMade, let note = try KeyReference.emptyNote(environment.parent, transaction) { common.note(note) }
      return isMade
    }
    guard isMade else {
      throw Failure(.conflict, "\(DisplayText.collection(environment.collection)) exists already.")
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
        "\(named.collection) is an environment of \(DisplayText.collection(named.parent)), and not of "
          + "\(DisplayText.collection(parent)).")
    }
    return named
  }
}
