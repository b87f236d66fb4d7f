import ArgumentParser
import Coffer

/// The command `prefs rename`.
struct RenameCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename",
    abstract: "Move a value to another key or collection.",
    discussion: """
      The value moves with its metadata, expiry and due date, in one transaction. An existing key is not replaced without \
      --force (exit code 9), nor is a sealed value moved to a collection that is not sealed (exit code 11). Earlier values \
      in the history stay with the old key.

      Examples:
        prefs rename editor/font-size editor/size
        prefs rename editor/theme shared/theme
        prefs rename -c urls https://old.example https://new.example
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var old: String

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var new: String

  @Flag(
    name: .shortAndLong,
    help:
      "Replace an existing key; also move sealed values unencrypted, and values that do not match the declaration there."
  )
  var force = false

  @OptionGroup var names: UndeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let from = try common.reference(old)
    let to = try common.referenceToSet(new)
    let session = try CommandSession(
      common, in: from.certainPlaces + to.certainPlaces, force: force, undeclared: names.undeclared)
    let notes = try session.write { transaction in
      let move = SettingMove(from: try from.resolved(transaction), to: try to.resolved(transaction), old, new)
      return try move.make(transaction, force: force)
    }
    for note in notes { common.note(note) }
  }
}
