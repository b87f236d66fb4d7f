import CofferCrypto
import CofferStorage

extension Database {
  // MARK: Opening

  /// Opens the store at `path`.
  ///
  /// Opening alone does not change it.
  ///
  /// - Throws: `CofferError.storeNotFound`, `.notAStore`, `.newerFormat`, `.wrongKey`, `.keyUnavailable`, `.damaged`,
  ///   `.rolledBack`, `.anotherStore`, `.busy`, `.permissionDenied`, `.belongsToAnotherUser` or `.inputOutput`; after each of
  ///   them every file is unchanged.
  public static func open(at path: String, key: KeySource, options: Options = Options()) throws -> Database {
    try open(at: path, key: key, options: options, vfs: .standard)
  }

  package static func open(at path: String, key: KeySource, options: Options, vfs: EncryptingVFS) throws -> Database {
    try CofferError.translating {
      try Store.whileReplaced {
        let store = try Store.open(at: path, key: key, isReadOnly: options.isReadOnly, vfs: vfs)
        let database = try Database(backing: .file(store), options: options)
        if options.acceptsOlderStore { database.core.witness?.forget() }
        try database.checkContents(of: store)
        database.key.withLock { $0 = key.isKept ? key : nil }
        return database
      }
    }
  }

  /// Creates a store at `path`, which `key` opens.
  ///
  /// It appears complete and durable, or not at all; missing folders are created. What was remembered of an earlier store at
  /// `path` is forgotten (see ``Freshness``).
  ///
  /// - Parameter stretching: The cost of each guess at a passphrase. Ignored for random keys.
  /// - Throws: `CofferError.storeExists` when there is already a file, including one that another process has just created;
  ///   `.keyUnavailable`, `.diskFull`, `.permissionDenied` or `.inputOutput`; `.unsupported` with `isReadOnly`, and when the
  ///   cost is out of bounds.
  public static func create(
    at path: String, key: KeySource, stretching: PasswordHash = .standard, options: Options = Options()
  ) throws -> Database {
    try create(at: path, key: key, stretching: stretching, options: options, vfs: .standard)
  }

  package static func create(
    at path: String, key: KeySource, stretching: PasswordHash = .standard, options: Options, vfs: EncryptingVFS
  ) throws -> Database {
    guard !options.isReadOnly else {
      throw CofferError.unsupported(reason: "a store cannot be created by opening it read-only")
    }
    try CofferError.translating {
      let group = try options.group.map { try FileOwner.group(named: $0) }
      if let group { try FilePermissions.checkFolder(above: path, letsWrite: group) }
      var record = NewStoreRecord(options.freshness)
      try Store.create(
        at: path, key: key, stretching: .password(stretching), group: group, vfs: vfs,
        fill: { connection, store in
          try fill(connection, of: store)
          try record.remember(store, connection)
        }, naming: { try record.keep(ofStoreAt: $0, $1, $2) })
    }
    return try open(at: path, key: key, options: options, vfs: vfs)
  }

  /// Opens the store at `path`, creating it if there is none.
  ///
  /// If several processes do so at once, one creates the store, and all open the same one. With `isReadOnly`, or the mode
  /// `.existing`, it only opens.
  ///
  /// - Throws: The errors of `open` and `create`.
  public static func openOrCreate(at path: String, key: KeySource, options: Options = Options()) throws -> Database {
    do {
      return try open(at: path, key: key, options: options)
    } catch CofferError.storeNotFound where !options.isReadOnly && options.mode == .createIfMissing {
      do {
        return try create(at: path, key: key, options: options)
      } catch CofferError.storeExists {
        return try open(at: path, key: key, options: options)
      }
    }
  }

  /// Creates an empty store in memory, which ends with the last reference to it.
  ///
  /// It behaves like one on disk, without encryption.
  public static func inMemory(options: Options = Options()) throws -> Database {
    try inMemory(options: options, faults: nil)
  }

  static func inMemory(options: Options = Options(), faults: StoreFaults?) throws -> Database {
    try CofferError.translating {
      let store = HeapStore()
      let connection = try SQLiteConnection(inMemory: store, isCreating: true, busyTimeout: options.busyTimeout)
      try Schema.create(in: connection)
      try connection.close()
      let database = try Database(backing: .memory(store), options: options, faults: faults)
      faults?.affect { [weak database] in database?.forgetItems() }
      return database
    }
  }

  private static func fill(_ connection: SQLiteConnection, of store: Store) throws {
    try Schema.create(in: connection)
    try Metadata(connection: connection).bind(to: store)
  }

  /// Checks the contents against the envelope, and against the remembered state of the store.
  ///
  /// An older envelope that was put back, or another store's, is rejected.
  ///
  /// - Returns: The MAC of the vault's record, if a vault is unlocked here; nil if there is no record.
  @discardableResult
  func checkContents(of store: Store) throws -> [UInt8]? {
    var vault: [UInt8]?
    if let witness = core.witness { store.consult(witness) }
    let record = core.witness?.record()
    if let witness = core.witness, let problem = witness.problem(record, store) {
      options.logger.warning("\(path): \(problem)\(witness.hasFile ? " `prefs doctor` mends it." : "")")
      state.withLock { $0.recordProblem = problem }
    }
    let connection = try SQLiteConnection.open(store, busyTimeout: options.busyTimeout) { connection in
      // Otherwise each read would take its own snapshot and locks.
      try connection.beginRead()
      try Schema.check(connection)
      if try !Metadata(connection: connection).check(against: store) {
        core.hasUnrecordedEnvelope.store(true, ordering: .relaxed)
      }
      if let record {
        let log = ChangeLog(connection: connection)
        try core.witness?.check(record, store, log)
        if case .passed(let commit) = try StoreWitness.verify(record, store, log) {
          options.logger.warning(
            """
            \(path): the record of the newest state has commit \(commit), which is no longer in the change log: nothing outside \
            of the store vouches for the commits that are.
            """)
        }
      }
      let table = VaultTable(connection: connection)
      if try table.hasRecord() { core.vault.isThere.store(true, ordering: .releasing) }
      if core.vault.isUnlocked { vault = try table.mac() }
      connection.comparedVersion = connection.dataVersion
      try connection.commit()
    }
    report(connection)
    let spare = SpareConnection(connection: connection)
    state.withLock { $0.spare = spare }
    return vault
  }

  /// Reports what a recovery by `connection` dropped from the log.
  func report(_ connection: SQLiteConnection) {
    guard let loss = connection.logLoss else { return }
    guard loss.wasSynced else {
      let note =
        "The log was whole only up to frame \(loss.firstFrame). After a power cut that is normal for commits that were not "
        + "synced; the store was opened at the last whole commit before them."
      options.logger.notice("\(path): \(note)")
      state.withLock { $0.logNote = note }
      return
    }
    let problem =
      "The log did not authenticate from frame \(loss.firstFrame) on; the store was opened at the last commit before it."
      + loss.copy.sentence
    options.logger.warning("\(path): \(problem)")
    state.withLock { $0.logProblem = problem }
  }

  // MARK: What opening has found

  package var logProblem: String? { state.withLock { $0.logProblem } }
  /// What opening left out because it was not synced before a power cut.
  package var logNote: String? { state.withLock { $0.logNote } }

  /// What was wrong with the record of the store's newest state when it was opened, as a sentence.
  package var recordProblem: String? { state.withLock { $0.recordProblem } }

  /// Removes what is in the place of the record and is none, if it is this user's own.
  ///
  /// - Returns: What was done about it, as a sentence; nil if there was no problem.
  package func mendRecord() -> String? {
    guard let problem = recordProblem, let witness = core.witness else { return nil }
    guard witness.removeObstacle() else {
      return problem + " It was left as it is: remove what is in the way, if it is yours."
    }
    state.withLock { $0.recordProblem = nil }
    return problem + " It was removed; the next commit makes a new one."
  }
}

extension LogLoss.Copy? {
  /// Where the copy is, or why there is none; begins with a space.
  fileprivate var sentence: String {
    switch self {
    case .kept(let path): " A copy of the log is kept as \(path)."
    case .missing(let reason): " No copy of the log could be kept: \(reason)."
    case nil: ""
    }
  }
}

extension KeySource {
  /// Whether it may be kept for reopening a store: it says where to get a key, or is a key that no person knows.
  fileprivate var isKept: Bool {
    switch self {
    case .keyFile, .key, .keyCommand, .credential: true
    case .passphrase, .recoveryKey: false
    }
  }
}
