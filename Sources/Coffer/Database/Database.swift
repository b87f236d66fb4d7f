import CofferCrypto
import CofferStorage
import Dispatch

/// An encrypted store, open in this process.
///
/// ```swift
/// try KeyFile.create(at: keyPath)
/// let database = try Database.openOrCreate(at: "settings.coffer", key: .keyFile(keyPath))
/// let settings = try ConnectionProxy(database: database)
/// try settings.setObject("dark", forKey: "theme")
/// ```
///
/// Any number of processes can open the same store. A database does not survive `fork()`: the child has to open its own.
public final class Database: Sendable {
  /// How a database behaves.
  public typealias Options = DatabaseOptions
  /// What opening does if there is no store.
  public typealias OpeningMode = DatabaseOptions.OpeningMode

  /// Whether it is in memory, where nothing is that an administrator could lock.
  package let isInMemory: Bool

  enum Backing: Sendable {
    case file(Store)
    case memory(HeapStore)
    /// The database was closed, and has released its store and the keys in it.
    case closed
  }

  /// The path of the store; a made-up one for a store in memory.
  public let path: String
  /// The absolute path by which it was opened: links on the way may lead to another store later.
  private let givenPath: String
  /// How this database behaves.
  public let options: Options
  var backing: Backing { currentBacking.withLock { $0 } }
  /// Changes when the store is replaced by another.
  private let currentBacking: Lock<Backing>
  /// The key to open a store that replaces this one; nil for a secret that a person knows, which is not kept.
  private let key = Lock<KeySource?>(nil)
  /// Held while a replacement store is opened; why the last one could not be, as it was reported.
  private let following = Lock<String?>(nil)
  package let core: DatabaseCore
  let observers = ObserverRegistry()
  var isReadOnly: Bool { options.isReadOnly }
  /// The background work of this database: resuming rotations and removing expired items.
  let resumption = DispatchGroup()
  let resumptionQueue = DispatchQueue(label: "coffer.rotation")
  private let state: Lock<State>
  /// Held while the database closes: a second call waits for the first.
  private let closing = Lock<Void>(())

  private struct State {
    var isClosed = false
    var connections: [WeakConnection] = []
    /// What recovery dropped from the log.
    var logProblem: String?
    /// What recovery left out because it was not synced before a power cut.
    var logNote: String?
    /// What was wrong with the record of the newest state.
    var recordProblem: String?
    /// The connection that opening used, kept for the first caller that needs one.
    var spare: SpareConnection?
    /// The proxies' pending changes, to be flushed when the database closes.
    var proxies: [WeakProxy] = []
    /// Idle connections of `concurrentRead`.
    var idleReaders: [Connection] = []
    /// When resuming a rotation was last tried.
    var lastResumption: ContinuousClock.Instant?
  }

  /// Unchecked: it is taken out of the state before it is used.
  private struct SpareConnection: @unchecked Sendable {
    let connection: SQLiteConnection
  }

  /// Unchecked: a weak reference is read and cleared atomically, and never assigned again.
  private struct WeakConnection: @unchecked Sendable {
    weak var connection: Connection?
  }

  private struct WeakProxy {
    weak var proxy: (any DatabaseProxy)?
  }

  /// Gives closures that may outlive a database access to its connections.
  private final class WeakDatabase: Sendable {
    private let reference = Lock<WeakReference>(WeakReference())

    private struct WeakReference: @unchecked Sendable {
      // Unchecked: see `WeakConnection`; assigned once, under the lock.
      weak var database: Database?
    }

    var database: Database? { reference.withLock { $0.database } }

    func set(_ database: Database) { reference.withLock { $0.database = database } }
  }

  private init(backing: Backing, options: Options, faults: StoreFaults? = nil) throws {
    currentBacking = Lock(backing)
    self.options = options
    state = Lock(State())
    switch backing {
    case .file(let store): (path, givenPath) = (store.path, store.givenPath)
    case .memory(let store): (path, givenPath) = (store.path, store.path)
    case .closed: throw CofferError.closed
    }
    let vault = VaultKeys()
    var witness: StoreWitness?
    if case .file(let store) = backing {
      let path = store.path
      witness = options.freshness.anchor(ofStoreAt: path, user: store.owner.user).map { anchor in
        StoreWitness(anchor: anchor, path: path, vault: vault) { options.logger.warning("\(path): \($0)") }
      }
    }
    isInMemory = if case .memory = backing { true } else { false }
    let this = WeakDatabase()
    core = DatabaseCore(
      options: options, path: isInMemory ? nil : givenPath, vault: vault, witness: witness, faults: faults,
      connect: {
        guard let database = this.database else { throw CofferError.closed }
        // Loaded before connecting, as for a session.
        let generation = database.core.generation.load(ordering: .acquiring)
        return (try database.connect(), generation)
      },
      onReplacement: { try this.database?.follow(replaced: $0) },
      onTrouble: { this.database?.report(trouble: $0) },
      onLogTooLarge: { this.database?.expireLongLivedReads() },
      onUnfinishedRotation: { this.database?.resumeRotation() },
      onExpiry: { this.database?.removeExpired() })
    this.set(self)
  }

  private static func connect(to backing: Backing, busyTimeout: Duration) throws -> SQLiteConnection {
    switch backing {
    case .file(let store): try SQLiteConnection.open(store, busyTimeout: busyTimeout)
    case .memory(let store): try SQLiteConnection(inMemory: store, busyTimeout: busyTimeout)
    case .closed: throw CofferError.closed
    }
  }

  private func expireLongLivedReads() {
    let connections = state.withLock { $0.connections.compactMap(\.connection) }
    for connection in connections { connection.expireLongLivedRead() }
  }

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
  private func checkContents(of store: Store) throws {
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
      if try VaultTable(connection: connection).hasRecord() { core.vault.isThere.store(true, ordering: .releasing) }
      connection.comparedVersion = connection.dataVersion
      try connection.commit()
    }
    report(connection)
    let spare = SpareConnection(connection: connection)
    state.withLock { $0.spare = spare }
  }

  /// Reports what a recovery by `connection` dropped from the log.
  private func report(_ connection: SQLiteConnection) {
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

  // MARK: Connections

  /// Creates a connection.
  ///
  /// - Throws: `CofferError.closed`, `.usedAfterFork`, `.busy`, `.damaged` or `.inputOutput`.
  public func makeConnection() throws -> Connection {
    try checkUsable()
    let connection = try Connection(database: self, session: makeSession())
    try register(connection)
    return connection
  }

  /// Creates a connection that opens on first use.
  func makeConnectionForLater() -> Connection {
    Connection(database: self, session: nil)
  }

  /// Registers an open connection, to be closed with the database.
  func register(_ connection: Connection) throws {
    try state.withLock { state in
      guard !state.isClosed else { throw CofferError.closed }
      state.connections.removeAll { $0.connection == nil }
      state.connections.append(WeakConnection(connection: connection))
    }
  }

  func makeSession() throws -> sending Session {
    // Load this before connecting: a connection made meanwhile may be to a newer store.
    let generation = core.generation.load(ordering: .acquiring)
    return try CofferError.translating {
      Session(connection: try makeSQLiteConnection(), core: core, generation: generation)
    }
  }

  /// Switches to the store that replaced `replaced`, unless that has happened already.
  ///
  /// - Throws: `CofferError.storeReplaced` when this database's key does not open it; `.busy`.
  func follow(replaced: Store) throws {
    try following.withLock { refusal in
      guard case .file(let store) = backing, store === replaced, store.isReplaced else { return }
      do {
        guard let key = key.withLock({ $0 }) else { throw CofferError.storeReplaced(path: path) }
        let spare = state.withLock { $0.spare.take() }
        try? spare?.connection.close()
        let new = try Store.whileReplaced {
          let new = try Store.open(at: givenPath, key: key, isReadOnly: isReadOnly, vfs: store.vfs)
          // The same rule as for an envelope. Another store, such as a backup, has root keys of its own, and only its slots vouch.
          if new.storeID == store.storeID {
            guard try new.succeeds(store) else { throw StorageError.rootKeyUnverified(path: path) }
          } else {
            core.vault.forgetMemory()
          }
          core.witness?.storeWasReplaced(by: new.path)
          try checkContents(of: new)
          return new
        }
        core.vault.lock()
        core.vault.isThere.store(false, ordering: .releasing)
        core.commits.forgetEverything()
        currentBacking.withLock { $0 = .file(new) }
        core.generation.add(1, ordering: .acquiringAndReleasing)
      } catch StorageError.busy {
        throw CofferError.busy
      } catch {
        let error = CofferError.translated(error)
        // Each use of the database tries again, until it can be opened.
        if refusal != "\(error)" {
          options.logger.warning("\(path): the store was replaced, and the new one cannot be opened: \(error)")
        }
        refusal = "\(error)"
        throw CofferError.storeReplaced(path: path)
      }
      refusal = nil
      forgetItems()
      options.logger.notice("\(path): the store was replaced. Everything is read again.")
    }
  }

  /// Whether commits can be followed again after this error only by opening the store again, with a key that opens it.
  package func mustBeReopened(after error: CofferError) -> Bool {
    switch error {
    case .wrongKey, .rootKeyUnverified: return true
    case .storeReplaced:
      guard case .file(let store) = backing else { return true }
      return !store.isReplaced || key.withLock { $0 } == nil
    default: return false
    }
  }

  /// Whether to try to resume a rotation: not often, since each attempt makes writers wait for a moment.
  func startResumption() -> Bool {
    state.withLock { state in
      let now = ContinuousClock.now
      guard !state.isClosed, state.lastResumption.map({ now - $0 > .seconds(10) }) ?? true else { return false }
      state.lastResumption = now
      return true
    }
  }

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

  /// Reports that the store is older than before: an earlier state was put back.
  func reportRollback(from known: CommitNumber, to last: CommitNumber) {
    options.logger.warning(
      """
      \(path): the store was rolled back, from commit \(known) to \(last): it was replaced by an earlier copy. \
      Everything is read again.
      """)
  }

  /// A connection to the store, or to the one that has replaced it.
  private func connect() throws -> SQLiteConnection {
    try Store.whileReplaced {
      let backing = backing
      do {
        return try Self.connect(to: backing, busyTimeout: options.busyTimeout)
      } catch StorageError.replaced {
        if case .file(let store) = backing { try follow(replaced: store) }
        throw StorageError.replaced(path: path)
      }
    }
  }

  private func makeSQLiteConnection() throws -> SQLiteConnection {
    if let spare = state.withLock({ $0.spare.take() }) { return spare.connection }
    let connection = try connect()
    // Another process may have crashed since, and this connection recovered its log.
    report(connection)
    return connection
  }

  /// Takes a connection for a concurrent read; pass it to `giveBack` afterwards.
  package func takeReader() throws -> Connection {
    try checkUsable()
    return try state.withLock { $0.idleReaders.popLast() } ?? makeConnection()
  }

  package func giveBack(_ reader: Connection) {
    state.withLock { state in
      if !state.isClosed, state.idleReaders.count < 4 { state.idleReaders.append(reader) }
    }
  }

  /// Throws if the database is closed, or belongs to the process that forked this one.
  func checkUsable() throws {
    if case .file(let store) = backing { try CofferError.translating { try store.checkProcess() } }
    guard !state.withLock({ $0.isClosed }) else { throw CofferError.closed }
  }

  // MARK: Closing

  /// Registers the pending changes of a proxy, to be flushed when the database closes.
  ///
  /// - Returns: Whether the database is open.
  func register(_ proxy: any DatabaseProxy) -> Bool {
    state.withLock { state in
      state.proxies.removeAll { $0.proxy == nil }
      guard !state.isClosed else { return false }
      state.proxies.append(WeakProxy(proxy: proxy))
      return true
    }
  }

  /// Makes the proxies reread what they read from the store.
  func forgetItems() {
    for proxy in state.withLock({ $0.proxies.compactMap(\.proxy) }) { proxy.storeWasReplaced() }
  }

  /// Makes the proxies reread what they read while the vault was locked.
  func vaultWasUnlocked() {
    for proxy in state.withLock({ $0.proxies.compactMap(\.proxy) }) { proxy.vaultWasUnlocked() }
  }

  /// Waits for running transactions, flushes all proxies, closes all connections, locks the vault, and wipes the store's keys.
  ///
  /// When this returns, all changes made through proxies before are in the store. From then on, everything on this database
  /// throws `CofferError.closed`, including its proxies and `Preferences`.
  ///
  /// - Throws: `CofferError.nestedTransaction` inside a transaction; the errors of a flush. In both cases the database stays
  ///   open, and nothing is lost: call this again, or first discard what cannot be written, with
  ///   ``ConnectionProxy/discardPendingChanges()``. Also the first error that a connection had while closing; the database is
  ///   closed then.
  public func close() throws {
    resumption.wait()
    guard !state.withLock({ $0.connections.compactMap(\.connection) }).contains(where: \.isInTransaction) else {
      throw CofferError.nestedTransaction
    }
    try closing.withLock { _ in try closeProxies() }
    // Not under the lock: this waits for commit handlers, and one of them may close the database too.
    try closeConnections()
  }

  /// Flushes and closes all proxies, and admits no new ones; if a flush fails, all stay open.
  private func closeProxies() throws {
    var closed: [any DatabaseProxy] = []
    while true {
      let open = state.withLock { state in
        let open = state.proxies.compactMap(\.proxy)
        state.proxies = []
        if open.isEmpty { state.isClosed = true }
        return open
      }
      if open.isEmpty { break }
      // Changes pending in a forked child are the parent's to write.
      guard (try? checkUsable()) != nil else { continue }
      for (index, proxy) in open.enumerated() {
        do {
          if try proxy.close() { closed.append(proxy) }
        } catch {
          for proxy in closed { proxy.reopen() }
          state.withLock { $0.proxies += (closed + open[index...]).map(WeakProxy.init) }
          throw error
        }
      }
    }
    for proxy in closed { proxy.databaseDidClose() }
  }

  private func closeConnections() throws {
    let (connections, spare) = state.withLock { state in
      defer {
        state.connections = []
        state.idleReaders = []
      }
      return (state.connections.compactMap(\.connection), state.spare.take())
    }
    core.feed.close()
    key.withLock { $0 = nil }
    defer { core.vault.lock() }
    var firstError: (any Error)?
    do {
      try CofferError.translating { try spare?.connection.close() }
    } catch {
      firstError = error
    }
    for connection in connections {
      do { try connection.close() } catch { firstError = firstError ?? error }
    }
    closeWitness()
    // A store is open in this process while something refers to it, and a caller may refer to the database for longer.
    currentBacking.withLock { $0 = .closed }
    if let firstError { throw firstError }
  }

  /// The last connection of all processes checkpoints the log, synced, and removes it.
  private func closeWitness() {
    guard let witness = core.witness, case .file(let store) = backing else { return }
    witness.close(isSynced: !store.hasLog, store)
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
