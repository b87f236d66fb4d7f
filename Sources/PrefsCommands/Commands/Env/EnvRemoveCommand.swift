import ArgumentParser
import Coffer

/// The command `prefs env remove`.
struct EnvRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove an environment and everything set in it.",
    discussion: """
      The collection it belongs to is unchanged. If the environment is not empty, asks first, or needs --force.

      Examples:
        prefs env remove web@staging
        prefs env remove web@staging --force
      """)

  @Argument(help: "COLLECTION@NAME.", completion: Completions.collections)
  var name: String

  @Flag(name: .shortAndLong, help: "Do not ask.")
  var force = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let environment = try EnvCommand.environment(name)
    let session = try CommandSession(common)
    try session.using(try session.open()) { database in
      let connection = try database.makeConnection()
      // Ask outside of a transaction, which would block all other writers until the answer.
      let count = try connection.read { transaction in
        guard try transaction.hasEnvironment(environment) else {
          throw try environment.notFound(in: transaction, hint: "List them with: prefs env list")
        }
        return try transaction.numberOfKeys(inCollection: environment.collection)
      }
      if count > 0, !force { try confirm(count, environment) }
      try session.unlocking(database) {
        try connection.readWrite { _ = try $0.removeEnvironment(environment) }
      }
    }
  }

  private func confirm(_ count: Int, _ environment: CollectionEnvironment) throws {
    let what = "\(environment.collection) with \(DisplayText.count(count, "key", "keys"))"
    let answer = common.noInput ? nil : try Terminal.confirm("Remove \(what)?")
    guard let answer else {
      throw Failure(.usage, "this removes \(what). Confirm with --force; there is no terminal to ask on.")
    }
    guard answer else { throw Failure(.other, "nothing was removed.") }
  }
}
