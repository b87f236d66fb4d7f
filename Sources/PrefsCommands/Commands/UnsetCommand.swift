import ArgumentParser
import Coffer

/// The command `prefs unset`.
struct UnsetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unset",
    abstract: "Remove keys.",
    discussion: """
      Removes everything in one transaction. If a key is missing, the others are still removed, and the exit code is 3; \
      with --force that is not an error.

      If the collection keeps history, that has the removed values (`prefs history`, `prefs revert`). --all --purge \
      erases the collection for good: its keys, their history and its settings, and its keys in `prefs log`, which keeps \
      only that it was erased, and by whom. It asks first, or needs --force.

      Examples:
        prefs unset editor/theme
        prefs unset editor/a editor/b
        prefs unset -c cache --match 'thumb-*'
        prefs unset -c cache --all
        prefs unset -c sessions --all --purge
      """,
    aliases: ["delete"])

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var keys: [String] = []

  @Flag(help: "Remove every key of the collection.")
  var all = false

  @Flag(help: "With --all: erase history, too, and the keys in the log.")
  var purge = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Remove the keys that match; COLLECTION/GLOB also works.", valueName: "glob"))
  var match: String?

  @Flag(name: .shortAndLong, help: "Do not ask before --all, and ignore missing keys.")
  var force = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    let ways = [!keys.isEmpty, all, match != nil].filter { $0 }.count
    if ways != 1 { throw ValidationError("Name keys, or use --all or --match GLOB.") }
    if purge, !all { throw ValidationError("--purge goes with --all.") }
  }

  mutating func run() throws {
    if all {
      let collection = try common.inEnvironment(common.namedCollection ?? "")
      try removeAll(of: collection.name, CommandSession(common, in: [collection]))
    } else if let match {
      let reference = try common.reference(match)
      try removeMatching(reference, CommandSession(common, in: reference.certainPlaces))
    } else {
      let references = try keys.map(common.reference)
      try remove(references, CommandSession(common, in: references.flatMap(\.certainPlaces)))
    }
  }

  // MARK: - Ways

  private func remove(_ references: [KeyReference], _ session: CommandSession) throws {
    let (missing, notes) = try session.write { transaction in
      var (missing, notes): ([Failure], [String]) = ([], [])
      for reference in references {
        let reference = try reference.resolved(transaction)
        if try transaction.hasObject(forKey: reference.key, inCollection: reference.collection) {
          try transaction.removeObject(forKey: reference.key, inCollection: reference.collection)
          notes += try transaction.notesOfLocks([reference.key], in: reference.collection)
        } else if !force {
          missing.append(Failure(.notFound, reference.notFoundMessage))
        }
      }
      return (missing, notes)
    }
    for note in notes { common.note(note) }
    guard let last = missing.last else { return }
    for failure in missing.dropLast() { Message.error(failure.message) }
    throw last
  }

  private func removeMatching(_ reference: KeyReference, _ session: CommandSession) throws {
    let (reference, keys, notes) = try session.write { transaction in
      let reference = try reference.resolved(transaction)
      let glob = Glob(reference.key)
      let keys = try transaction.allKeys(inCollection: reference.collection).filter(glob.matches)
      try transaction.removeObjects(forKeys: keys, inCollection: reference.collection)
      return (reference, keys, try transaction.notesOfLocks(keys, in: reference.collection))
    }
    for note in notes { common.note(note) }
    guard !keys.isEmpty || force else {
      throw Failure(
        .notFound, "no key in \(DisplayText.collection(reference.collection)) matches \"\(reference.key)\".")
    }
    common.detail("removed \(DisplayText.count(keys.count, "key", "keys"))")
  }

  private func removeAll(of collection: String, _ session: CommandSession) throws {
    let name = DisplayText.collection(collection)
    let database = try session.open()
    try session.using(database) { database in
      let connection = try database.makeConnection()
      // Ask outside of a transaction, which would block all other writers until the answer.
      let (count, notes) = try connection.read { transaction in
        let leavesTraces = try purge && transaction.hasTraces(ofCollection: collection)
        if !force, !leavesTraces { try KeyReference.requireItems(in: collection, transaction) }
        let keys = try transaction.allKeys(inCollection: collection)
        return (keys.count, try transaction.notesOfLocks(keys, in: collection))
      }
      if purge {
        let keys = DisplayText.count(count, "key", "keys")
        if !force { try Erasure.confirm("\(keys) of \(name) with all history", common) }
        try connection.readWrite { try $0.erase(collection: collection) }
        try Erasure.clearTraces(database, common)
        for note in notes { common.note(note) }
        return common.detail("erased \(name)")
      }
      if count > 0, !force { try confirm(count, name) }
      try connection.readWrite { try $0.removeAllObjects(inCollection: collection) }
      for note in notes { common.note(note) }
      common.detail("removed all keys of \(name)")
    }
  }

  private func confirm(_ count: Int, _ name: String) throws {
    let keys = DisplayText.count(count, "key", "keys")
    let answer = common.noInput ? nil : try Terminal.confirm("Remove \(keys) of \(name)?")
    guard let answer else {
      throw Failure(.usage, "--all removes \(keys) of \(name). Confirm with --force; there is no terminal to ask on.")
    }
    guard answer else { throw Failure(.other, "nothing was removed.") }
  }
}
