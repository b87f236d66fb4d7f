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
  let givenPath: String
  /// How this database behaves.
  public let options: Options
  var backing: Backing { currentBacking.withLock { $0 } }
  /// Changes when the store is replaced by another.
  let currentBacking: Lock<Backing>
  /// The key to open a store that replaces this one; nil for a secret that a person knows, which is not kept.
  let key = Lock<KeySource?>(nil)
  /// Held while a replacement store is opened; why the last one could not be, as it was reported.
  private let following = Lock<String?>(nil)
  package let core: DatabaseCore
  let observers = ObserverRegistry()
  var isReadOnly: Bool { options.isReadOnly }
  /// The background work of this database: resuming rotations and removing expired items.
  let resumption = DispatchGroup()
  let resumptionQueue = DispatchQueue(label: "coffer.rotation")
  let state: Lock<State>
  /// Held while the database closes: a second call waits for the first.
  let closing = Lock<Void>(())

  struct State {
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
  struct SpareConnection: @unchecked Sendable {
    let connection: SQLiteConnection
  }

  /// Unchecked: a weak reference is read and cleared atomically, and never assigned again.
  struct WeakConnection: @unchecked Sendable {
    weak var connection: Connection?
  }

  struct WeakProxy {
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

  init(backing: Backing, options: Options, faults: StoreFaults? = nil) throws {
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
      state.connections.removeAll { $0.connection == nil || $0.connection === connection }
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

  /// Switches to the store that replaced `replaced`, unless that has happened already; to its log and index, if only those were
  /// replaced.
  ///
  /// One with the same envelope, such as an older copy that was written over it, needs no key, and leaves the vault as it is if
  /// that is the same.
  ///
  /// - Throws: `CofferError.storeReplaced` when this database's key does not open it; `.busy`.
  func follow(replaced: Store) throws {
    try following.withLock { refusal in
      guard case .file(let store) = backing, store === replaced else { return }
      guard store.isReplaced else { return followFiles(of: store) }
      do {
        guard !store.isMixed else {
          throw CofferError.damaged(
            part: "file",
            reason: "it was written over while its log had changes, which do not belong to its new contents")
        }
        let spare = state.withLock { $0.spare.take() }
        try? spare?.connection.close()
        let (new, hasSameVault) = try Store.whileReplaced {
          let reopened = try Store.reopen(store)
          let new = try reopened ?? openSuccessor(of: store)
          // The same rule as for an envelope. Another store, such as a backup, has root keys of its own, and only its slots vouch.
          if new.storeID == store.storeID {
            guard try new.succeeds(store) else { throw StorageError.rootKeyUnverified(path: path) }
            let (known, found) = (store.envelopeSequence, new.envelopeSequence)
            guard found >= known || !store.isOverwrittenInPlace else {
              throw StorageError.rolledBack(knownCommit: nil, known: known, found: found)
            }
          } else {
            core.vault.forgetMemory()
          }
          core.witness?.storeWasReplaced(by: new.path)
          let vault = try checkContents(of: new)
          // While it is locked there is nothing to keep.
          return (new, reopened != nil && vault.map(core.vault.knows(mac:)) ?? false)
        }
        if !hasSameVault {
          core.vault.lock()
          core.vault.isThere.store(false, ordering: .releasing)
        }
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

  /// - Throws: `CofferError.storeReplaced` where the key cannot be read again.
  private func openSuccessor(of store: Store) throws -> Store {
    guard let key = key.withLock({ $0 }) else { throw CofferError.storeReplaced(path: path) }
    return try Store.open(at: givenPath, key: key, isReadOnly: isReadOnly, vfs: store.vfs)
  }

  /// Switches to the files that have the names of the log and the index now.
  ///
  /// All connections of this process use one index, whatever has its name, so those to the former files are closed. For one that
  /// is in use this does not wait long: its next use, or that of a connection that is opened meanwhile, comes here again.
  private func followFiles(of store: Store) {
    let (connections, spare) = state.withLock { ($0.connections.compactMap(\.connection), $0.spare.take()) }
    try? spare?.connection.close()
    for connection in connections { connection.closeUntilUse(of: store) }
    core.feed.wake()
    for _ in 0..<100 where store.isIndexOpen { usleep(1000) }
    core.commits.forgetEverything()
    core.generation.add(1, ordering: .acquiringAndReleasing)
    forgetItems()
    options.logger.notice("\(path): other files have the names of its log and index. Everything is read again.")
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
}
