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
      common, in: from.certainPlaces + to.certainPlaces, isWriting: true, force: force, undeclared: names.undeclared)
    let notes: [String] = try session.write { transaction in
      let (from, to) = (try from.resolved(transaction), try to.resolved(transaction))
      guard try transaction.hasObject(forKey: from.key, inCollection: from.collection) else {
        throw from.notFound(in: transaction)
      }
      if from.isSame(as: to) { return [] }
      let others = try transaction.otherNames(ofKey: from.key, inCollection: from.collection)
      if others.contains(SettingPlace(to.key, in: to.collection)) {
        let isBehind = try hasOtherValue(to.key, in: to.collection, than: from, transaction)
        let values = isBehind ? "one of them has not followed the other yet" : "have one value"
        return ["\(old) and \(new) are names of one setting, and \(values); nothing was changed."]
      }
      // They would go with it.
      if !force,
        let lost = try others.first(where: {
          try hasOtherValue($0.key.string, in: $0.collection.string, than: from, transaction)
        })
      {
        throw Failure(
          .conflict,
          "\(old) and \(lost) are names of one setting, of which \(lost) has another value, that would be removed, too; "
            + "nothing was changed. Give --force to remove it.")
      }
      try transaction.requireUnlocked(forKey: to.key, inCollection: to.collection)
      if !force { try check(from, to, transaction) }
      try transaction.moveObject(
        forKey: from.key, inCollection: from.collection, toKey: to.key, inCollection: to.collection)
      return transaction.notesOfLocks([from.key], in: from.collection)
    }
    for note in notes { common.note(note) }
  }

  private func hasOtherValue(
    _ key: String, in collection: String, than from: KeyReference, _ transaction: borrowing ReadWriteTransaction
  ) throws -> Bool {
    guard let other = try transaction.value(forKey: key, inCollection: collection) else { return false }
    return try other != transaction.value(forKey: from.key, inCollection: from.collection)
  }

  private func check(
    _ from: KeyReference, _ to: KeyReference, _ transaction: borrowing ReadWriteTransaction
  ) throws {
    if try transaction.hasObject(forKey: to.key, inCollection: to.collection) {
      throw Failure(
        .conflict,
        "key \"\(to.key)\" in \(DisplayText.collection(to.collection)) exists already; nothing was changed. "
          + "Replace it with --force.")
    }
    let becomesClear = try transaction.isSealed(collection: from.collection)
    if becomesClear, try !transaction.isSealed(collection: to.collection) {
      throw Failure(
        .refused,
        "\(DisplayText.collection(from.collection)) is sealed, but \(DisplayText.collection(to.collection)) is not; "
          + "nothing was changed. Move the value unencrypted with --force.")
    }
  }
}
