import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs diff`.
struct DiffCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare collections, stores, or a store with a file.",
    discussion: """
      Prints a line for each key that differs: - if only the first side has it, + if only the second has it, ~ if its \
      value, type or metadata differs. Secrets and sealed values are compared but never shown. Versions and times are \
      ignored.

      With two names, compares two collections of the store, for each key that is set in one of them: the values in force, as \
      `prefs get` prints them. What an administrator locks is the same in an environment and its collection, whatever is stored. \
      With --with, compares what is stored, in the store or in one collection, with \
      another store, such as a backup, or with a file in any format that `prefs import` reads, as an import would set it. \
      Secrets that an export did not show are skipped, as are metadata where the format has none. With a collection, a \
      text file holds the settings of that collection.

      An environment named as a collection, such as web@staging, is compared including the values it inherits. --env \
      compares the collections in that environment; one collection without --with is compared with itself there. When \
      comparing all collections, each counts by itself. PREFS_ENV is ignored.

      The exit codes are those of diff(1): 0 for no differences, 1 for differences, 2 or more for trouble; what is \"any \
      other failure\" elsewhere is 2 here.

      Examples:
        prefs diff web web@staging
        prefs diff web --env staging
        prefs diff --with settings.backup.coffer
        prefs diff web --with web.toml
        prefs diff web shop --with /srv/shop.coffer --other-key-file /etc/shop/key
      """)

  @Argument(
    help: "The collection; without it, all of them, for --with.", completion: Completions.collections)
  var name: String?

  @Argument(
    help: "The collection to compare with; with --with, the same name by default.",
    completion: Completions.collections)
  var otherName: String?

  @Option(
    help: ArgumentHelp("The store or file to compare with; - is standard input.", valueName: "path"),
    completion: .file())
  var with: String?

  @OptionGroup var file: ImportedFileOptions
  @OptionGroup var other: OtherStoreOptions

  @Flag(help: "Print a JSON array.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  private var named: String? { name.map(CommandArguments.value) ?? common.namedCollection }
  private var otherNamed: String? { otherName.map(CommandArguments.value) ?? named }

  /// Whether a collection is compared with its own environment.
  private var isWithItself: Bool { with == nil && otherName == nil }
  private var collection: String? { isWithItself ? named : named.map(inEnvironment) }
  private var otherCollection: String? { otherNamed.map(inEnvironment) }

  private func inEnvironment(_ name: String) -> String { common.env.map { "\(name)@\($0)" } ?? name }

  mutating func validate() throws {
    if with == "" { throw ValidationError("--with needs a path.") }
    if name != nil, !common.collection.isEmpty { throw ValidationError("Name the collections without -c.") }
    try common.checkEnvironment(of: [named, otherNamed])
    guard let with else {
      if otherName == nil, common.env == nil || named == nil {
        throw ValidationError("Name two collections, an environment of one with --env, or a store or file with --with.")
      }
      if file.format != nil { throw ValidationError("--format needs --with.") }
      if !other.isEmpty { throw ValidationError("The options of the other store need --with.") }
      return
    }
    try file.check(with, descriptors: [common.passphraseFd, common.keyFd])
    try other.check(common)
  }

  // MARK: - Running

  mutating func run() throws {
    let session = try CommandSession(common)
    let found: [DifferenceText] = try session.using(try session.openForReading()) { database in
      guard let with else {
        try session.unlockVault(database, for: Self.mayShow([collection, otherCollection]))
        return try database.makeConnection().read { transaction in
          for name in [collection, otherCollection] { try KeyReference.requireItems(in: name ?? "", transaction) }
          return try differences(transaction, transaction, areInForce: true)
        }
      }
      try session.unlockVault(database, for: collection.map { Self.mayShow([$0]) })
      return try isFile(with) ? differences(database, fromFile: with) : differences(database, fromStore: with)
    }
    if json {
      try StandardOutput.write(JSONText.array(found.flatMap(\.objects)) + "\n")
    } else {
      try StandardOutput.write(found.flatMap(\.lines).map { $0 + "\n" }.joined())
    }
    for note in found.flatMap(\.locks) { common.note(note) }
    if found.contains(where: { !$0.differences.isEmpty }) { throw ExitCode(ExitStatus.differing) }
  }

  /// The collections, and the parents of those that are environments.
  private static func mayShow(_ collections: [String?]) -> [String] {
    collections.compactMap(\.self).flatMap { [$0] + [CollectionEnvironment(collection: $0)?.parent].compactMap(\.self) }
  }

  private func isFile(_ path: String) throws -> Bool {
    if path == "-" || file.format != nil { return true }
    do {
      _ = try Database.slots(at: path)
      return false
    } catch CofferError.notAStore {
      return true
    }
  }

  private func differences(_ database: Database, fromStore path: String) throws -> [DifferenceText] {
    let session = try other.session(path, common)
    return try session.using(try session.openForReading()) { other in
      try session.unlockVault(other, for: otherCollection.map { Self.mayShow([$0]) })
      return try differences(database, other)
    }
  }

  /// Imports the file into an in-memory store and compares with that.
  private func differences(_ database: Database, fromFile path: String) throws -> [DifferenceText] {
    let file = try ImportedFile(path, file, collection: collection, noInput: common.noInput)
    guard other.isEmpty else { throw Failure(.usage, "\(path) is not a store and takes no key.") }
    guard file.isDatabase || otherName == nil else {
      throw Failure(.usage, "\(path) holds the settings of one collection: name it.")
    }
    let memory = try Database.inMemory()
    _ = try database.makeConnection().read { try file.typed(as: $0) }.importInto(memory)
    // What the file hides is no difference where the store has it, too.
    var hidden: [ImportedSetting] = []
    try database.makeConnection().read { transaction in
      try memory.makeConnection().readWrite { memory in
        for setting in file.hidden {
          if try transaction.hasObject(forKey: setting.key, inCollection: setting.collection) {
            hidden.append(setting)
          } else {
            try memory.setObject("<hidden>", forKey: setting.key, inCollection: setting.collection)
          }
        }
      }
    }
    return try differences(database, memory, comparesMetadata: file.isDatabase, hidden: hidden)
  }

  // MARK: - Comparing

  private func differences(
    _ first: Database, _ second: Database, comparesMetadata: Bool = true, hidden: [ImportedSetting] = []
  ) throws -> [DifferenceText] {
    try first.makeConnection().read { first in
      try second.makeConnection().read { second in
        if let collection, let otherCollection, try second.shownKeys(in: second.shown(otherCollection)).isEmpty,
          !hidden.contains(where: { $0.collection.utf8.elementsEqual(collection.utf8) })
        {
          try KeyReference.requireItems(in: collection, first)
        }
        return try differences(first, second, comparesMetadata: comparesMetadata, hidden: hidden)
      }
    }
  }

  /// - Parameter areInForce: Whether the values in force are compared, and not what is stored.
  private func differences(
    _ first: borrowing ReadTransaction, _ second: borrowing ReadTransaction, areInForce: Bool = false,
    comparesMetadata: Bool = true, hidden: [ImportedSetting] = []
  ) throws -> [DifferenceText] {
    guard let collection else {
      let names = try Set((first.allCollections() + second.allCollections()).map(ByteString.init)).sorted()
      return try names.map(\.string).map {
        try differences($0, [$0], first, $0, [$0], second, areInForce, comparesMetadata, hidden)
      }
    }
    let otherCollection = otherCollection ?? collection
    return [
      try differences(
        collection, first.shown(collection), first, otherCollection, second.shown(otherCollection), second,
        areInForce, comparesMetadata, hidden)
    ]
  }

  private func differences(
    _ name: String, _ shown: [String], _ first: borrowing ReadTransaction, _ otherName: String,
    _ otherShown: [String], _ second: borrowing ReadTransaction, _ areInForce: Bool, _ comparesMetadata: Bool,
    _ hidden: [ImportedSetting]
  ) throws -> DifferenceText {
    let skipped = hidden.filter { $0.collection.utf8.elementsEqual(otherName.utf8) }.map { ByteString($0.key) }
    let effective =
      areInForce
      ? (
        try first.effectiveSettings(of: name, parent: shown.dropFirst().first),
        try second.effectiveSettings(of: otherName, parent: otherShown.dropFirst().first)
      ) : nil
    let differences = try first.differences(
      in: shown, from: second, in: otherShown, inForce: effective, comparesMetadata: comparesMetadata,
      skipping: Set(skipped))
    return DifferenceText(
      collection: name, otherCollection: otherName, differences: differences,
      locks: areInForce ? [] : try first.notesOfLocks(differences.map(\.key), in: name))
  }
}
