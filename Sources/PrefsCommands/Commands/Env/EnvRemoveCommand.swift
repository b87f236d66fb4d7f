import ArgumentParser
import Coffer

/// The command `prefs env remove`.
struct EnvRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove an environment and everything set in it.",
    discussion: """
      The collection it belongs to is unchanged. If the environment is not empty, asks first, or needs --force.

      If it keeps history, that has the removed values, and an environment created again under this name has it. --purge \
      erases all of it for good, also of an environment that was removed before; `prefs log` keeps only that it was \
      erased, and by whom.

      Examples:
        prefs env remove web@staging
        prefs env remove web@staging --force
        prefs env remove web@staging --purge
      """)

  @Argument(help: "COLLECTION@NAME.", completion: Completions.collections)
  var name: String

  @Flag(name: .shortAndLong, help: "Do not ask.")
  var force = false

  @Flag(help: "Erase its history, too, and its keys in the log.")
  var purge = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let environment = try EnvCommand.environment(name)
    let session = try CommandSession(common)
    try session.using(try session.open()) { database in
      let connection = try database.makeConnection()
      // Ask outside of a transaction, which would block all other writers until the answer.
      let count = try connection.read { transaction in
        let exists =
          try purge
          ? transaction.hasTraces(ofCollection: environment.collection) : transaction.hasEnvironment(environment)
        guard exists else {
          throw try environment.notFound(in: transaction, hint: "List them with: \(CommandHint.text("env list"))")
        }
        return try transaction.numberOfKeys(inCollection: environment.collection)
      }
      if purge {
        let keys = DisplayText.count(count, "key", "keys")
        if !force { try Erasure.confirm("\(environment.collection), \(keys), with all history", common) }
        // Takes a sealed one off the vault's list.
        try session.unlocking(database) {
          try connection.readWrite { _ = try $0.eraseEnvironment(environment) }
        }
        return try Erasure.clearTraces(database, common)
      }
      if count > 0, !force { try confirm(count, environment) }
      try connection.readWrite { _ = try $0.removeEnvironment(environment) }
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
