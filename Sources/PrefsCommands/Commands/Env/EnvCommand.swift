import ArgumentParser
import Coffer

/// The command `prefs env`, which has only subcommands.
struct EnvCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "env",
    abstract: "Create, list and remove environments of a collection.",
    discussion: """
      The environment staging of the collection web is the collection web@staging, which holds only what differs there. \
      With --env staging, or PREFS_ENV=staging, commands that read web get the value set in the environment, or else the \
      one in web; commands that write to web write to the environment. If the collection has no such environment, they \
      fail (exit code 3). The name web@staging means what is set in that collection alone where values are listed, copied, \
      exported, edited or removed; what is in force, as `prefs get`, `exec`, `describe` and `diff` show it, is the same as with \
      --env staging.

      Declarations, locks and administrator defaults of web apply to its environments. If web is sealed, so are they.

      Examples:
        prefs env create web@staging --from web
        prefs set web/port 8081 --env staging
        prefs list web --env staging --values
        prefs diff web web@staging
        prefs env list
      """,
    subcommands: [EnvCreateCommand.self, EnvListCommand.self, EnvRemoveCommand.self])

  /// The environment that an argument names.
  static func environment(_ argument: String) throws -> CollectionEnvironment {
    let name = CommandArguments.value(argument)
    guard let environment = CollectionEnvironment(collection: name) else {
      throw Failure(
        .usage,
        "\"\(name)\" is not an environment. Write COLLECTION@NAME; the name may have letters, digits, - and _.")
    }
    return environment
  }
}
