import ArgumentParser
import Coffer

/// The command `prefs revert`.
struct RevertCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revert",
    abstract: "Bring back an earlier value.",
    discussion: """
      The value returns with its metadata as a new version; the current one becomes history. Removed keys can be brought back, \
      too. `prefs history KEY` lists the versions, and `prefs restore-store` brings back a whole store from a backup. An expiry in the future still applies; one in the past is \
      dropped. History has no due dates: set them again.

      Examples:
        prefs revert editor/theme@12
        prefs revert -c mail user@example.org@7
      """)

  @Argument(help: "KEY@VERSION or COLLECTION/KEY@VERSION.", completion: Completions.keys)
  var version: String

  @OptionGroup var declared: DeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let argument = CommandArguments.value(version)
    func refusal(_ problem: String) -> Failure {
      Failure(.usage, "\(problem): write KEY@VERSION, with a number from prefs history.")
    }
    guard let at = argument.utf8.lastIndex(of: UInt8(ascii: "@")) else { throw refusal("the version is missing") }
    let text = argument[argument.utf8.index(after: at)...]
    guard let number = CommitNumber(text), number > 0 else {
      throw refusal("\"\(text)\" is not the number of a version")
    }
    let reference = try common.reference(String(argument[..<at]))
    let session = try CommandSession(
      common, in: reference.certainPlaces, force: declared.force, undeclared: declared.undeclared)
    // Also where the version is the present one, and nothing would be set.
    try session.requireUnlocked(reference)
    try session.write { transaction in
      let reference = try reference.resolved(transaction)
      try transaction.requireUnlocked(forKey: reference.key, inCollection: reference.collection)
      try transaction.restoreObject(forKey: reference.key, inCollection: reference.collection, version: number)
    }
  }
}
