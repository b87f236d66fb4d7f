import ArgumentParser
import Coffer

/// The command `prefs unset`.
struct UnsetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unset",
    abstract: "Remove keys.",
    discussion: """
      Everything goes in one transaction. When a key is missing the others are removed all the same, and the exit code is 3; \
      with --force that is no error.

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
    help: ArgumentHelp("Remove the keys that match; COLLECTION/GLOB also serves.", valueName: "glob"))
  var match: String?

  @Flag(name: .shortAndLong, help: "Do not ask before --all, and do not mind missing keys.")
  var force = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    let ways = [!keys.isEmpty, all, match != nil].filter { $0 }.count
    if ways != 1 { throw ValidationError("Name keys, or use --all or --match GLOB.") }
  }

  mutating func run() throws {
    let session = try Session(common)
    if all {
      try removeAll(session)
    } else if let match {
      try removeMatching(KeyReference(match, collection: common.namedCollection), session)
    } else {
      try remove(keys.map { KeyReference($0, collection: common.namedCollection) }, session)
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

  private func removeAll(_ session: Session) throws {
    let collection = common.namedCollection ?? ""
    let name = KeyReference.describe(collection)
    let database = try session.open()
    try session.using(database) { database in
      let connection = try database.makeConnection()
      // Asked outside of a transaction, which would keep every other writer waiting for the answer.
      let count = try connection.read { try $0.numberOfKeys(inCollection: collection) }
      guard count > 0 || force || collection.isEmpty else { throw Failure(.notFound, "there is no \(name).") }
      if count > 0, !force { try confirm(count, name) }
      try connection.readWrite { try $0.removeAllObjects(inCollection: collection) }
      common.detail("removed all keys of \(name)")
    }
  }

  private func confirm(_ count: Int, _ name: String) throws {
    let keys = DisplayText.count(count, "key", "keys")
    let answer = common.noInput ? nil : try Terminal.confirm("Remove \(keys) of \(name)?")
    guard let answer else {
      throw Failure(.usage, "--all removes \(keys) of \(name). Confirm with --force; there is nobody to ask.")
    }
    guard answer else { throw Failure(.other, "nothing was removed.") }
  }
}
