import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs copy`.
struct CopyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy settings to another collection or another store.",
    discussion: """
      Copies one collection, some of its keys with --only, or all collections with --to alone: values with their types, \
      secrets, metadata, expiries and due dates, in one transaction. History is not copied. An existing key that differs \
      is not replaced (exit code 9) unless --merge or --replace is given.

      An environment named as a collection, such as web@staging, is copied alone: only what is set in it. --env staging \
      copies what is stored for web in that environment, and from web itself what is not set there; --env applies only to the \
      first name, and PREFS_ENV is ignored. An environment to copy into must exist: `prefs env create`. What an administrator \
      gives or locks in files is not copied; a note names the keys whose stored values are copied below a lock.

      Sealed values are opened with the vault of their store and sealed again for the other one. If the target collection \
      is not sealed, they are not copied unencrypted without --force (exit code 11). The other store must exist; create \
      one with `prefs init`, or a full copy with `prefs backup`.

      Examples:
        prefs copy web web@staging
        prefs copy web@staging web --only port,host --merge --dry-run
        prefs copy web --env staging --to /srv/staging/settings.coffer
        prefs copy web --to /srv/web/settings.coffer --other-key-file /etc/web/key
        prefs copy --to settings.backup.coffer --merge
      """)

  @Argument(
    help: "The collection; without it, all of them, for --to.", completion: Completions.collections)
  var name: String?

  @Argument(
    help: "The target collection; with --to, the same name by default.",
    completion: Completions.collections)
  var newName: String?

  @Option(help: ArgumentHelp("The store to copy into.", valueName: "path"), completion: .file())
  var to: String?

  @Option(
    parsing: .unconditionalSingleValue,
    help: ArgumentHelp("Only these keys, separated by commas; each must exist.", valueName: "keys"))
  var only: [String] = []

  @Flag(help: "How to handle existing items.")
  var mode: MergeMode?

  @Flag(
    name: .shortAndLong,
    help: """
      Also copy sealed values unencrypted, values that do not match their declarations, and over secrets what is none.
      """)
  var force = false

  @OptionGroup var names: UndeclaredOptions

  @Flag(help: "Change nothing; show what would change.")
  var dryRun = false

  @OptionGroup var other: OtherStoreOptions

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  private var named: String? { name.map(CommandArguments.value) ?? common.namedCollection }
  private var newCollection: String? { newName.map(CommandArguments.value) ?? named }

  /// The collection to copy; an environment with its parent.
  private func source() throws -> NamedCollection? {
    try named.map { try NamedCollection($0, environment: common.env, isVariable: false) }
  }
  private var keys: [String]? {
    only.isEmpty
      ? nil
      : only.flatMap {
        CommandArguments.value($0).split(separator: ",", omittingEmptySubsequences: true).map(String.init)
      }
  }

  mutating func validate() throws {
    if to == "" { throw ValidationError("--to needs a path.") }
    if name != nil, !common.collection.isEmpty { throw ValidationError("Name the collections without -c.") }
    try common.checkEnvironment(of: [named])
    if named == nil, !only.isEmpty { throw ValidationError("--only needs a collection.") }
    if !only.isEmpty, mode == .replace { throw ValidationError("--replace removes all other keys; leave out --only.") }
    guard to == nil else { return try other.check(common) }
    guard let name, let newName else {
      throw ValidationError("Name the collection and its target: another collection, or a store with --to.")
    }
    if try (source()?.name ?? name).utf8.elementsEqual(newName.utf8) {
      throw ValidationError("A collection cannot be copied to itself.")
    }
    if !other.isEmpty { throw ValidationError("The options of the other store need --to.") }
  }

  // MARK: - Running

  mutating func run() throws {
    let session = try CommandSession(common, force: force, undeclared: names.undeclared)
    let (report, locks) = try to.map { try copy(session, to: $0) } ?? copyWithin(session)
    let text = ImportText(report: report, isDryRun: dryRun, redaction: Redaction(reveals: false))
    try text.write(asJSON: json, common)
    for lock in locks { common.note(lock) }
  }

  /// What was copied, and what is in force instead of copied values, as sentences.
  private typealias Copied = (report: PlainImportReport, locks: [String])

  private func copyWithin(_ session: CommandSession) throws -> Copied {
    try session.using(try session.open()) { database in
      try session.unlockVault(database, for: (source()?.shown ?? []) + [newCollection].compactMap(\.self))
      return try database.makeConnection().readWrite { transaction in
        return try copy(from: transaction, into: transaction)
      }
    }
  }

  private func copy(_ session: CommandSession, to path: String) throws -> Copied {
    let target = try other.session(path, common, force: force, undeclared: names.undeclared)
    return try session.using(try session.openForReading()) { database in
      try session.unlockVault(database, for: source()?.shown)
      return try target.using(try target.open()) { other in
        let names = try newCollection.map { [$0] } ?? database.makeConnection().read { try $0.allCollections() }
        try target.unlockVault(other, for: names)
        return try database.makeConnection().read { source in
          try other.makeConnection().readWrite { try copy(from: source, into: $0) }
        }
      }
    }
  }

  // MARK: - Copying

  private func copy(
    from source: borrowing some Reading & ~Copyable, into target: borrowing ReadWriteTransaction
  ) throws -> Copied {
    if let environment = newCollection.flatMap(CollectionEnvironment.init(collection:)),
      try !target.hasEnvironment(environment)
    {
      throw try environment.notFound(in: target)
    }
    let collections: [CopiedCollection]
    if let from = try self.source(), let newCollection {
      try check(from, source)
      collections = [CopiedCollection(name: from.name, parent: from.parent, newName: newCollection, keys: keys)]
    } else {
      collections = try source.allCollections().map { CopiedCollection(name: $0, newName: $0) }
    }
    for collection in collections where !force { try checkSealing(collection, source, target) }
    let bar = ProgressBar(common)
    defer { bar.finish() }
    let report = try target.copyItems(
      collections, from: source, mode: (mode ?? .merge).ofImport, isDryRun: dryRun,
      progress: { bar.show($0, of: "copying") },
      willReplace: { key, collection, revealsSecret in
        if revealsSecret, !force {
          throw Failure(
            .refused,
            "key \"\(key)\" in \(DisplayText.collection(collection)) is a secret, and would become readable; nothing was "
              + "changed. Leave it out with --only, or replace it with --force.")
        }
        guard mode == nil else { return }
        throw Failure(
          .conflict,
          "key \"\(key)\" in \(DisplayText.collection(collection)) exists already, with another value; nothing was changed. "
            + "Replace such keys with --merge.")
      })
    let locks = try collections.flatMap { collection in
      try source.notesOfLocks(
        collection.keys ?? source.shownKeys(in: collection.shown).sorted().map(\.string), in: collection.name)
    }
    return (report, locks)
  }

  private func check(_ collection: NamedCollection, _ source: borrowing some Reading & ~Copyable) throws {
    if collection.parent != nil, let environment = CollectionEnvironment(collection: collection.name) {
      guard try source.hasEnvironment(environment) else { throw try environment.notFound(in: source) }
    }
    try KeyReference.requireItems(in: collection.name, source)
    let shown = try source.shownKeys(in: collection.shown)
    if let missing = keys?.first(where: { !shown.contains(ByteString($0)) }) {
      throw KeyReference(missing, in: collection).notFound(in: source)
    }
  }

  private func checkSealing(
    _ collection: CopiedCollection, _ source: borrowing some Reading & ~Copyable,
    _ target: borrowing ReadWriteTransaction
  ) throws {
    guard let sealed = try collection.shown.first(where: { try source.isSealed(collection: $0) }) else { return }
    if try target.isSealed(collection: collection.newName) { return }
    throw Failure(
      .refused,
      "\(DisplayText.collection(sealed)) is sealed, but \(DisplayText.collection(collection.newName)) in the "
        + "target is not; nothing was changed. Seal that one first, or copy the values unencrypted with --force.")
  }
}
