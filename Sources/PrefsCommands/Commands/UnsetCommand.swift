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

      Examples:
        prefs unset editor/theme
        prefs unset editor/a editor/b
        prefs unset -c cache --match 'thumb-*'
        prefs unset -c cache --all
      """,
    aliases: ["delete"])

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var keys: [String] = []

  @Flag(help: "Remove every key of the collection.")
  var all = false

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
  }

  mutating func run() throws {
    if all {
      let collection = try common.inEnvironment(common.namedCollection ?? "")
      try removeAll(of: collection.name, Session(common, in: [collection]))
    } else if let match {
      let reference = try common.reference(match)
      try removeMatching(reference, Session(common, in: [reference.place]))
    } else {
      let references = try keys.map(common.reference)
      try remove(references, Session(common, in: references.map(\.place)))
    }
  }

  // MARK: - Ways

  private func remove(_ references: [KeyReference], _ session: Session) throws {
    let missing = try session.write { transaction in
      var missing: [Failure] = []
      for reference in references {
        if try transaction.hasObject(forKey: reference.key, inCollection: reference.collection) {
          try transaction.removeObject(forKey: reference.key, inCollection: reference.collection)
        } else if !force {
          missing.append(Failure(.notFound, reference.notFoundMessage))
        }
      }
      return missing
    }
    guard let last = missing.last else { return }
    for failure in missing.dropLast() { Message.error(failure.message) }
    throw last
  }

  private func removeMatching(_ reference: KeyReference, _ session: Session) throws {
    let glob = Glob(reference.key)
    let count = try session.write { transaction in
      let keys = try transaction.allKeys(inCollection: reference.collection).filter(glob.matches)
      try transaction.removeObjects(forKeys: keys, inCollection: reference.collection)
      return keys.count
    }
    guard count > 0 || force else {
      throw Failure(
        .notFound, "no key in \(KeyReference.describe(reference.collection)) matches \"\(reference.key)\".")
    }
    common.detail("removed \(DisplayText.count(count, "key", "keys"))")
  }

  private func removeAll(of collection: String, _ session: Session) throws {
    let name = KeyReference.describe(collection)
    let database = try session.open()
    try session.using(database) { database in
      let connection = try database.makeConnection()
      // Ask outside of a transaction, which would block all other writers until the answer.
      let count = try connection.read { transaction in
        if !force { try KeyReference.requireItems(in: collection, transaction) }
        return try transaction.numberOfKeys(inCollection: collection)
      }
      if count > 0, !force { try confirm(count, name) }
      try connection.readWrite { try $0.removeAllObjects(inCollection: collection) }
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
