import CofferStorage

extension Database {
  /// Replaces the store at `path` by a copy of the one at `backup`, and keeps a copy of the old store beside it.
  ///
  /// ```swift
  /// let earlier = try Database.restore(at: "settings.coffer", from: "settings.backup.coffer", key: .keyFile(keyPath))
  /// ```
  ///
  /// The backup may be older than the last state used here. It is left unchanged, and opens with the same keys as its copy.
  /// The restored store begins without a log. The old store is copied to `-replaced-1`, or the next free number, with every
  /// commit up to then.
  ///
  /// At any moment, also after a power cut, `path` is either the old store with all its commits, or the restored one.
  ///
  /// With `force`, programs may have the store open. Those that opened it with a key file, a key, a command or a credential
  /// switch to the restored store by themselves, and are notified that everything may have changed; those that opened it
  /// with a passphrase get `CofferError.storeReplaced`. Their commits up to then are in the old store, which gets no further
  /// commits; changes that a proxy has not flushed yet go into the restored one.
  ///
  /// - Parameter force: Whether to proceed if other programs have the store open.
  /// - Returns: The path of the copy of the old store; nil if there was none.
  /// - Throws: `CofferError.busy` when the store is open and `force` is false, or when the backup is open in this process;
  ///   `.unsupported` when the backup has a log beside it, or is changed while it is read, or the file at `path` has other names,
  ///   hard links; `.damaged` when not every page of it authenticates; the errors of opening the backup. Nothing is changed then.
  @discardableResult
  public static func restore(
    at path: String, from backup: String, key: KeySource, force: Bool = false, options: Options = Options()
  ) throws -> String? {
    try restore(at: path, from: backup, key: key, force: force, options: options) { _ in }
  }

  /// - Parameter confirm: Called with what the restore changes besides values, if there is any, or if the store that it
  ///   replaces, or the one that is remembered, cannot be compared; called again if that store is changed meanwhile. An error that it
  ///   throws ends the restore, and nothing is changed.
  @discardableResult
  package static func restore(
    at path: String, from backup: String, key: KeySource, force: Bool = false, options: Options = Options(),
    vfs: EncryptingVFS = .standard, confirm: (RestoredKeys) throws -> Void
  ) throws -> String? {
    try CofferError.translating {
      for _ in 0..<Store.attemptCount {
        do {
          return try restoreOnce(at: path, from: backup, key: key, force: force, options: options, vfs: vfs, confirm)
        } catch is ReplacedState.Changed {}
      }
      throw StorageError.busy
    }
  }

  /// Modelled in `Documentation/Models/StoreRestore.pml`.
  ///
  /// - Throws: `ReplacedState.Changed` if the store at `path` is no longer what was confirmed.
  private static func restoreOnce(
    at path: String, from backup: String, key: KeySource, force: Bool, options: Options, vfs: EncryptingVFS,
    _ confirm: (RestoredKeys) throws -> Void
  ) throws -> String? {
    var unwatched = options
    unwatched.freshness = .unwatched
    unwatched.isReadOnly = false
    let replacement = try Store.Replacement(of: backup, at: path, vfs: vfs)
    // Before anything is asked, and again when it is replaced.
    guard try force || !Store.isPresent(at: path) || Store.isUnused(path) else { throw StorageError.busy }
    let (state, memory) = try prepare(
      replacement, of: path, from: backup, key: key, options, unwatched, vfs: vfs, confirm)
    let earlier = try place(replacement, at: path, as: state, key: key, force: force, options, unwatched, vfs)
    // A program that was about to keep a record of the old store may just have done so.
    var accepting = options
    accepting.acceptsOlderStore = true
    do {
      let database = try open(at: path, key: key, options: accepting, vfs: vfs)
      if let memory { database.core.vault.inherit(memory) }
      database.noteRestore()
      Store.announce(path)
      try database.close()
    } catch let error as CofferError {
      throw CofferError.unfinished(
        done: "\(path) is now a copy of \(backup)." + (earlier.map { " The previous store is \($0)." } ?? ""),
        next: "Open it to complete the restore.", cause: error)
    }
    // What could not be checkpointed while a program had its snapshot.
    if let earlier, Store.isPresent(at: earlier + "-wal") {
      try? open(at: earlier, key: key, options: unwatched, vfs: vfs).close()
    }
    return earlier
  }

  /// Says in the log that the store was restored, which it was even if that cannot be written.
  private func noteRestore() {
    guard !options.isReadOnly else { return }
    do {
      try write { $0.note(.restored) }
    } catch {
      options.logger.warning("\(path): the restore is not in the log. \(error)")
    }
  }

  /// Checks that the copy is a whole store that `key` opens, and makes it ready to be put in place.
  ///
  /// - Returns: What was compared and confirmed, and what the record remembers of the vault, if that stays true.
  private static func prepare(
    _ replacement: Store.Replacement, of path: String, from backup: String, key: KeySource, _ options: Options,
    _ unwatched: Options, vfs: EncryptingVFS, _ confirm: (RestoredKeys) throws -> Void
  ) throws -> (ReplacedState, VaultMemory?) {
    let copy: Database
    do {
      copy = try open(at: replacement.temporaryPath, key: key, options: unwatched, vfs: vfs)
    } catch CofferError.notAStore(_, let reason) {
      throw CofferError.notAStore(path: backup, reason: reason)
    }
    let store = try copy.storeOnDisk()
    let compared: ComparedStore
    do {
      defer { try? copy.close() }
      try copy.checkWhole()
      compared = try compare(copy, withStoreAt: path, key, options, unwatched, vfs)
      if !compared.keys.isEmpty { try confirm(compared.keys) }
    }
    try store.markPlaced()
    // If it was another one, the vault of the backup is then the one to remember.
    return (compared.state, compared.keys.changesVaultKey ? nil : compared.memory)
  }

  /// A store that is about to be replaced.
  private struct ComparedStore {
    /// What the copy changes.
    let keys: RestoredKeys
    let state: ReplacedState
    /// What the record remembers of the vault.
    let memory: VaultMemory?
  }

  private static func compare(
    _ copy: Database, withStoreAt path: String, _ key: KeySource, _ options: Options, _ unwatched: Options,
    _ vfs: EncryptingVFS
  ) throws -> ComparedStore {
    let record = try KeptRecord(ofStoreAt: path, options)
    guard Store.isPresent(at: path) else {
      // Only the record can still tell.
      let memory = try record?.vault(asReadBy: copy.storeOnDisk())
      return ComparedStore(
        keys: try RestoredKeys(copy, missing: record?.objection(to: copy), memory), state: .missing, memory: memory)
    }
    switch try readable(at: path, key, unwatched, vfs) {
    case .success(let old):
      defer { try? old.close() }
      let memory = try record?.vault(asReadBy: old.storeOnDisk())
      var state = ReplacedState.unreadable(try? Store.peekEnvelope(at: path))
      do {
        // Before anything is compared: what changes meanwhile is noticed then.
        state = try old.read { try ReplacedState($0) }
        let keys = try RestoredKeys(copy, replacing: old, memory, because: record?.objection(to: old))
        return ComparedStore(keys: keys, state: state, memory: memory)
      } catch let obstacle as CofferError {
        // It opens, and is damaged behind its first pages. The copy was checked.
        return ComparedStore(
          keys: try RestoredKeys(copy, replacingStoreAt: path, because: obstacle, memory), state: state, memory: memory)
      }
    case .failure(let obstacle):
      let state = ReplacedState.unreadable(try? Store.peekEnvelope(at: path))
      // A copy of the same file may read it.
      let memory = try record?.vault(asReadBy: copy.storeOnDisk())
      return ComparedStore(
        keys: try RestoredKeys(copy, replacingStoreAt: path, because: obstacle, memory), state: state, memory: memory)
    }
  }

  /// - Parameter state: What was confirmed.
  private static func place(
    _ replacement: Store.Replacement, at path: String, as state: ReplacedState, key: KeySource, force: Bool,
    _ options: Options, _ unwatched: Options, _ vfs: EncryptingVFS
  ) throws -> String? {
    /// Programs that switch to the restored store check the record, too, so it goes first; and comes back if the old
    /// store stays.
    func replacing(_ replace: () throws -> Void) throws {
      guard let record = try KeptRecord(ofStoreAt: path, options) else { return try replace() }
      try record.removing(for: replace)
    }
    guard Store.isPresent(at: path) else {
      try state.expect(.missing)
      try replacing { try replacement.place() }
      return nil
    }
    guard try force || Store.isUnused(path, patience: .seconds(1)) else { throw StorageError.busy }
    guard case .success(let old) = try readable(at: path, key, unwatched, vfs) else {
      return try replacement.placeOverUnreadable(
        force: force, check: { try state.expect(.unreadable($0)) }, replacing: replacing)
    }
    defer { try? old.close() }
    return try old.makeConnection().perform { session in
      try replacement.place(
        over: session.connection, busyTimeout: options.busyTimeout,
        check: {
          // What could not be read then was confirmed as such.
          if case .unreadable = state, (try? ReplacedState(session)) == nil { return }
          try state.expect(ReplacedState(session))
        }, replacing: replacing)
    }
  }

  /// The store that will be replaced; the error if it is damaged, or has other keys.
  private static func readable(
    at path: String, _ key: KeySource, _ options: Options, _ vfs: EncryptingVFS
  ) throws -> Result<Database, CofferError> {
    do {
      return .success(try open(at: path, key: key, options: options, vfs: vfs))
    } catch CofferError.busy {
      throw StorageError.busy
    } catch let error as CofferError {
      return .failure(error)
    }
  }
}

/// What a restore has compared of the store that it replaces.
///
/// While the restore asks, and until it has the write lock, programs may change that.
enum ReplacedState: Equatable {
  case missing
  case readable(storeID: [UInt8], envelope: UInt64, vault: [UInt8]?, sealed: [String])
  /// It does not open, or is damaged; the envelope is nil if that is damaged, too.
  case unreadable(Envelope?)

  /// As of the current transaction.
  init(_ session: Session) throws {
    guard let store = session.connection.store else { throw StorageError.closed }
    self = .readable(
      storeID: store.storeID, envelope: store.envelopeSequence, vault: try session.vaultTable.mac(),
      sealed: try session.collections.sealedNames())
  }

  struct Changed: Error {}

  func expect(_ present: ReplacedState) throws {
    guard present == self else { throw Changed() }
  }
}

/// The record of a store that is being replaced, or is missing.
private struct KeptRecord {
  let anchor: any FreshnessAnchor
  let path: String
  let record: [UInt8]?

  /// nil if nothing remembers the store's state.
  init?(ofStoreAt path: String, _ options: Database.Options) throws {
    guard let (path, user) = (try? Store.owner(at: path)) ?? (try? Store.owner(ofNewAt: path)),
      let anchor = options.freshness.anchor(ofStoreAt: path, user: user)
    else { return nil }
    self.anchor = anchor
    self.path = path
    record = anchor.record(ofStoreAt: path)
  }

  /// What it remembers of the vault; nil if it is of another store, or under keys that `store` does not have.
  func vault(asReadBy store: Store) throws -> VaultMemory? {
    guard let record, case .whole(let witness, _) = try store.read(witness: record) else { return nil }
    return witness.vault
  }

  /// Why `database` would not open in the place of the store that is remembered; nil if it would, or none is.
  func objection(to database: Database) throws -> CofferError? {
    guard let record, case .file(let store) = database.backing else { return nil }
    let witness = StoreWitness(anchor: anchor, path: path, vault: VaultKeys())
    do {
      try database.read { try witness.check(record, store, $0.changeLog) }
      return nil
    } catch let error as CofferError {
      switch error {
      case .rolledBack: return error
      case .anotherStore: return .anotherStore(path: path)
      default: throw error
      }
    }
  }

  /// Removes it for `replace`, and puts it back if that throws.
  func removing(for replace: () throws -> Void) throws {
    try anchor.replacingAlone(storeAt: path) {
      // Programs may have kept another since it was read.
      let record = anchor.record(ofStoreAt: path)
      anchor.keep(nil, ofStoreAt: path)
      do {
        try replace()
      } catch {
        if let record { anchor.keep(record, ofStoreAt: path) }
        throw error
      }
    }
  }
}
