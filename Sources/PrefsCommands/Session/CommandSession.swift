import Coffer
import CofferMaintenance

/// A command's access to its store.
package struct CommandSession {
  package let options: SessionOptions
  package let path: String
  /// The administrators' files that apply to it.
  package let files: AdministratorFiles
  /// The store of the command, for the message of a failure.
  ///
  /// Unsafe: only the thread that runs the command creates sessions.
  nonisolated(unsafe) private(set) static var firstPath: String?

  /// - Parameter takesCollections: Whether the command uses every named collection, not only one.
  /// - Parameter force: Whether to set values that violate their declarations.
  /// - Parameter undeclared: Whether to set keys that are not declared.
  /// - Parameter collections: The collections in use, if they may be environments.
  /// - Parameter mayBeGone: Whether an environment that is named as a collection may have been removed; else it must exist.
  init(
    _ options: CommonOptions, in collections: [NamedCollection] = [], takesCollections: Bool = false,
    mayBeGone: Bool = false, force: Bool = false, undeclared: Bool = false
  ) throws {
    if !takesCollections { try options.checkCollectionCount() }
    try self.init(options.ofSession(in: collections, mayBeGone: mayBeGone, force: force, undeclared: undeclared))
  }

  /// The session of a command for which collections are only names.
  package init(ofCommandWith options: CommonOptions) throws {
    try self.init(options, takesCollections: true)
  }

  package init(_ options: SessionOptions) throws {
    self.options = options
    path = try StoreLocation.store(options)
    files = AdministratorFiles(application: options.app)
    if Self.firstPath == nil { (Self.firstPath, CommandHint.storeOptions) = (path, options.ofStore) }
    options.detail("using the store \(path)")
  }

  /// Finds keys for this store.
  var lookup: KeyLookup { KeyLookup(options: options, store: path) }

  private func databaseOptions(isReadOnly: Bool = false) -> Database.Options {
    var result = Database.Options(
      isReadOnly: isReadOnly, checksDeclarations: !options.allowsBadValues,
      actor: options.actor ?? Environment.variable("PREFS_ACTOR"), acceptsOlderStore: options.acceptsOlderStore)
    result.settingRules = SettingRules(files: files, allowsUndeclared: options.allowsUndeclared)
    if let timeout = options.timeout { result.busyTimeout = .milliseconds(Int64((timeout * 1000).rounded())) }
    return result
  }

  // MARK: - Opening and creating

  /// Opens the existing store.
  package func open() throws -> Database {
    try open(databaseOptions())
  }

  /// Opens the store for a command that only reads; the store may be on a read-only medium or a full disk.
  ///
  /// - Parameters:
  ///   - isReadOnly: Whether to write nothing even if the medium permits it.
  ///   - willOpen: Called with each source before it is tried.
  package func openForReading(
    isReadOnly: Bool = false, willOpen: (KeySource) -> Void = { _ in }
  ) throws -> Database {
    guard !isReadOnly, StoreLocation.isWritable(path) else {
      return try open(databaseOptions(isReadOnly: true), willOpen: willOpen)
    }
    return try open(databaseOptions(), fallback: databaseOptions(isReadOnly: true), willOpen: willOpen)
  }

  /// - Parameter fallback: Other options to open it with if the disk has no room for a log.
  private func open(
    _ databaseOptions: Database.Options, fallback: Database.Options? = nil,
    willOpen: (KeySource) -> Void = { _ in }
  ) throws -> Database {
    let slots = try Database.slots(at: path)
    let database = try lookup.open(slots) { key in
      willOpen(key)
      do {
        return try Self.whileImageChanges { try Database.open(at: path, key: key, options: databaseOptions) }
      } catch let error as CofferError {
        guard let fallback, error.leavesReading else { throw error }
        return try Self.whileImageChanges { try Database.open(at: path, key: key, options: fallback) }
      }
    }
    do {
      try Self.whileImageChanges { try requireEnvironments(database) }
      return database
    } catch {
      try? database.close()
      throw error
    }
  }

  /// How often to read again what another program was writing.
  private static let attemptCount = 5

  /// Runs `body`, and again if a store that can only be read as an image has changed meanwhile.
  package static func whileImageChanges<R>(_ body: () throws -> R) throws -> R {
    for _ in 1..<attemptCount {
      do { return try body() } catch CofferError.imageChanged {}
    }
    return try body()
  }

  private func requireEnvironments(_ database: Database) throws {
    guard !options.environments.isEmpty else { return }
    try database.makeConnection().read { transaction in
      for environment in options.environments where try !transaction.hasEnvironment(environment) {
        throw try environment.notFound(in: transaction)
      }
    }
  }

  /// Opens the store, and returns the key source that opened it.
  func openWithKey() throws -> (database: Database, key: KeySource) {
    let slots = try Database.slots(at: path)
    return try lookup.open(slots) { (try Database.open(at: path, key: $0, options: databaseOptions()), $0) }
  }

  /// Salvages a damaged store.
  func salvage(to output: String, newKeyFile: String?, progress: (Double) -> Void) throws -> SalvageReport {
    // Before prompting or creating anything.
    if FilePlace.isTaken(output) { throw CofferError.storeExists(path: output) }
    for path in [output, newKeyFile].compactMap(\.self) { try StoreLocation.requireFolder(of: path) }
    // The new store has no other key, and a TPM's would be lost with its machine.
    return try lookup.open(try Database.slots(at: path), usesTPM: newKeyFile != nil) { key in
      try Database.salvage(
        at: path, key: key, to: output, newKey: newKeyFile.map { try lookup.newKeyFile($0) } ?? key, progress: progress)
    }
  }

  /// Creates a new store.
  ///
  /// - Parameters:
  ///   - stretching: How to stretch a passphrase.
  ///   - group: The group whose members share it.
  func create(withPassphrase: Bool, stretching: StretchingOptions, group: String?) throws -> Database {
    // Before prompting or creating anything.
    if try exists() { throw CofferError.storeExists(path: path) }
    let hash = try stretching.hash()
    let source = try lookup.sourceForNewStore(withPassphrase: withPassphrase, group: group)
    var databaseOptions = databaseOptions()
    databaseOptions.group = group
    return try Database.create(at: path, key: source, stretching: hash, options: databaseOptions)
  }

  private var mayMakeStore: Bool { !options.requiresStore && options.environments.isEmpty }

  /// Opens the store, or creates it with the given options, like `init`.
  package func openOrCreate() throws -> Database {
    // A new store has no environments.
    do { return try open() } catch CofferError.storeNotFound where mayMakeStore {}
    let source = try lookup.sourceForNewStore(withPassphrase: false)
    do {
      let database = try Database.create(at: path, key: source, options: databaseOptions())
      options.note("created the store \(path).")
      return database
    } catch CofferError.storeExists {
      // Another process has just created it.
      return try Database.open(at: path, key: source, options: databaseOptions())
    }
  }

  /// Warns of copies beside the store, which no command changes: the keys of that time open them, and they contain what was removed
  /// or sealed since.
  func noteCopies() {
    let copies = Database.copies(besides: path)
    guard !copies.isEmpty else { return }
    options.note(
      "beside the store are copies of earlier states, which stay as they are, for everyone whose key opened it then: "
        + copies.joined(separator: ", ") + ". Remove them if you do not need them.")
  }

  /// Whether there is a store, readable or not.
  package func exists() throws -> Bool {
    do {
      _ = try Database.slots(at: path)
      return true
    } catch CofferError.storeNotFound {
      return false
    }
  }

  /// Opens the store for a dry run; if there is none, an empty one in memory.
  func openForTrial() throws -> Database {
    do { return try open() } catch CofferError.storeNotFound where mayMakeStore {
      return try .inMemory(options: databaseOptions())
    }
  }

  // MARK: - Transactions

  // If a transaction needs the vault, it is unlocked if possible, and the transaction starts over.

  /// Opens the store, reads in one transaction, and closes it.
  func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
    try using(try openForReading()) { database in
      try unlocking(database) { try database.makeConnection().read(body) }
    }
  }

  /// The same, for values in force: those of administrators' files exist before the first `set` creates the store.
  func readInForce<R>(
    in collections: [NamedCollection], _ body: (borrowing ReadTransaction) throws -> R
  ) throws -> R {
    do {
      return try read(body)
    } catch CofferError.storeNotFound where mayMakeStore {
      let isGiven = try collections.contains { try !EffectiveSettings(of: $0.name, files).managedKeys.isEmpty }
      guard isGiven else { throw CofferError.storeNotFound(path: path) }
      return try using(.inMemory(options: databaseOptions())) { try $0.makeConnection().read(body) }
    }
  }

  /// Opens the store, writes in one transaction that is on disk when this returns, and closes it.
  func write<R>(_ body: (borrowing ReadWriteTransaction) throws -> R) throws -> R {
    try using(try open()) { database in
      try unlocking(database) { try database.makeConnection().readWrite(body) }
    }
  }

  /// The same, creating the store first if there is none, unless the setting is locked.
  func writeCreating<R>(
    _ reference: KeyReference, _ body: (borrowing ReadWriteTransaction, KeyReference) throws -> R
  ) throws -> R {
    try requireUnlocked(reference)
    return try writeCreating { transaction in
      let reference = try reference.resolved(transaction)
      // Applications that only the store knows have files, too; checked even if nothing would be set.
      try transaction.requireUnlocked(forKey: reference.key, inCollection: reference.collection)
      return try body(transaction, reference)
    }
  }

  /// The same, creating the store first if there is none.
  func writeCreating<R>(_ body: (borrowing ReadWriteTransaction) throws -> R) throws -> R {
    try using(try openOrCreate()) { database in
      try unlocking(database) { try database.makeConnection().readWrite(body) }
    }
  }

  /// Closes `database` after `body`, whose error, if any, comes first.
  package func using<R>(_ database: Database, _ body: (Database) throws -> R) throws -> R {
    let result = Result { try body(database) }
    if case .failure = result { try? database.close() } else { try database.close() }
    return try result.get()
  }
}

extension CofferError {
  /// Whether a store that cannot be opened for writing might be opened for reading.
  ///
  /// Root, who can write whatever the mode, opens another user's store with that user's rights.
  fileprivate var leavesReading: Bool {
    switch self {
    case .diskFull, .permissionDenied: true
    default: false
    }
  }
}
