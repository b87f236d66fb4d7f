import ArgumentParser
import Coffer

/// The command `prefs env`, which has only subcommands.
struct EnvCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "env",
    abstract: "Make, list and remove environments of a collection.",
    discussion: """
      The environment staging of the collection web is the collection web@staging: it holds what differs there, and nothing \
      else. With --env staging, or PREFS_ENV=staging, commands that read web show what is set in the environment, else what is \
      set in web, and commands that write it write to the environment. A collection that has no such environment is an error \
      then (exit code 3). web@staging as a name is that collection alone, for `prefs diff` and `prefs copy` for instance.

      What is declared, locked or given by an administrator for web holds for its environments. Where web is sealed, its \
      environments are, too.

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
        "\"\(name)\" names no environment. That is COLLECTION@NAME, with a name of letters, digits, - and _.")
    }
    return environment
  }
}
