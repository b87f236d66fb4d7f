import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// A connection to a database: runs one transaction at a time, each seeing one snapshot.
///
/// Several connections to a database can be used concurrently; readers never wait for the writer, nor it for them. Calls on
/// one connection from several threads wait for each other.
///
/// ```swift
/// let connection = try database.makeConnection()
/// try connection.readWrite { transaction in
///   try transaction.setObject("dark", forKey: "theme", inCollection: "ui")
/// }
/// let theme: String? = try connection.read { try $0.object(forKey: "theme", inCollection: "ui") }
/// ```
///
/// For asynchronous code there are forms with the same names, which wait without blocking a thread:
///
/// ```swift
/// let theme: String? = try await connection.read { try $0.object(forKey: "theme", inCollection: "ui") }
/// ```
public final class Connection: Sendable, Identifiable {
  /// Identifies this connection, in a ``Commit`` for instance.
  public let id: ConnectionID
  /// The database this connection belongs to.
  public let database: Database
  /// Runs everything that uses `state`, in call order.
  private let queue = DispatchQueue(label: "coffer.connection")
  /// The thread inside a call, to distinguish a nested transaction from one that has to wait.
  private let owner = Atomic<UInt>(0)
  let lending = Lending()
  private let state: State

  /// Writes the changes made through a proxy before a write was queued.
  package typealias FlushOfEarlierChanges = (Session) throws -> Void

  private struct WriteListener {
    let owner: ObjectIdentifier
    let callback: @Sendable () -> FlushOfEarlierChanges
  }

  /// Unchecked: the session is used only on `queue`, or by the thread that has borrowed the connection; the rest is atomic
  /// or locked.
  private final class State: @unchecked Sendable {
    var session: Session?
    /// Of the session that was closed, for the next one.
    var cacheLimit: Int?
    /// Whether there is no session before the next use.
    let isForLater: Atomic<Bool>
    /// Called before a write is queued on this connection, so that a proxy can close its open batch.
    let willQueueWrite = Lock<[WriteListener]>([])

    init(session: Session?) {
      self.session = session
      isForLater = Atomic(session == nil)
    }
  }

  /// Whether it is still unused, and has opened nothing.
  var isForLater: Bool { state.isForLater.load(ordering: .acquiring) }

  /// - Parameter session: nil to open it on first use.
  init(database: Database, session: sending Session?) {
    self.database = database
    id = .next()
    state = State(session: session)
    state.session?.owner = self
  }

  // MARK: Transactions

  /// Runs `body` in a read transaction, which sees one snapshot throughout.
  ///
  /// The compiler of Swift 6.3.1 crashes on a local function, a stored closure or a `Task` in `body` that uses the
  /// transaction; with `{ (transaction: borrowing _) in` it reports the actual error, if any. See <doc:GettingStarted>.
  ///
  /// - Throws: The errors of `body`; `CofferError.nestedTransaction` inside another transaction of this connection;
  ///   `.closed`, `.damaged`, `.inputOutput` and similar errors; `.snapshotExpired` in a long-lived read that was ended.
  public func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result {
    try perform { session in
      try session.read { try body(ReadTransaction(context: TransactionContext(session: session))) }
    }
  }

  /// Runs `body` in a write transaction and commits; the commit is synced to disk when this returns.
  ///
  /// If `body` throws, the transaction is rolled back, and the error is rethrown.
  ///
  /// The write lock is taken at the start (`BEGIN IMMEDIATE`), so that nothing read inside can change before the commit.
  ///
  /// Changes made through a proxy of this connection before the call are written first; if that fails, so does this.
  ///
  /// The compiler of Swift 6.3.1 crashes on a local function, a stored closure or a `Task` in `body` that uses the
  /// transaction; with `{ (transaction: borrowing _) in` it reports the actual error, if any. See <doc:GettingStarted>.
  ///
  /// - Throws: The errors of `body`; `CofferError.busy` when the lock is not available within the busy timeout; `.readOnly`
  ///   on a read-only database, `.nestedTransaction` inside a write of the same database, `.longLivedReadTransaction` in a
  ///   long-lived read, `.diskFull`, `.inputOutput` and similar errors. After any error, nothing is changed.
  public func readWrite<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result {
    try checkMayWrite()
    let earlierChanges = announceWrite()
    var hasBegun = false
    func write() throws -> Result {
      try perform { session in
        // Usually written by now. If a flush has failed, it must not be retried after this write.
        for flush in earlierChanges { try flush(session) }
        return try session.write(.full) {
          hasBegun = true
          return try body(ReadWriteTransaction(context: TransactionContext(session: session)))
        }
      }
    }
    var generation: Int?
    for _ in 1..<Store.attemptCount {
      do {
        return try write()
      } catch let error as CofferError {
        guard case .storeReplaced = error, !hasBegun else { throw error }
        // The store was replaced while this waited for the write lock; again, if it was followed since.
        let current = database.core.generation.load(ordering: .acquiring)
        if current == generation { throw error }
        generation = current
      }
    }
    return try write()
  }

  /// Sets how many recently read items the connection caches; 250 by default, 0 for none.
  ///
  /// The cache never shows anything but a transaction's own snapshot.
  ///
  /// - Throws: `CofferError.nestedTransaction` inside a transaction of this connection; `.closed`.
  public func setCacheLimit(_ limit: Int) throws {
    try perform { $0.cache.limit = max(0, limit) }
  }

  // MARK: For other parts of Coffer

  /// Runs `body` on the connection, after everything queued before.
  package func perform<Result>(_ body: (Session) throws -> Result) throws -> Result {
    try database.checkUsable()
    let thread = currentThread()
    if owner.load(ordering: .relaxed) == thread {
      // This thread is already on the queue.
      guard let session = state.session, session.allowsAnotherTransaction else { throw CofferError.nestedTransaction }
      return try body(session)
    }
    if database.core.gate.isHeldByThisThread {
      return try lending.borrow(from: queue) { try withSession(thread: thread, body) }
    }
    return try queue.sync {
      try withSession(thread: thread, body)
    }
  }

  /// Throws if a write by this thread would deadlock (inside a transaction of this connection, or a write of this database),
  /// or inside a sanitizer.
  package func checkMayWrite() throws {
    let gate = database.core.gate
    if gate.isHeldByThisThread && !gate.isDelivering || database.core.isSanitizing {
      throw CofferError.nestedTransaction
    }
    if isInTransaction, let session = state.session, !session.allowsAnotherTransaction {
      throw CofferError.nestedTransaction
    }
  }

  /// Runs `body` on the connection later, after everything queued before.
  ///
  /// It always runs; if the connection cannot be used, it receives the error.
  package func enqueue(
    after delay: DispatchTimeInterval? = nil, _ body: @escaping @Sendable (Swift.Result<Session, any Error>) -> Void
  ) {
    let work: @Sendable () -> Void = {
      do {
        try self.database.checkUsable()
        // Mostly used for writes, next to which checking the file is cheap.
        try self.withSession(thread: currentThread(), looksForReplacement: true) { body(.success($0)) }
      } catch {
        body(.failure(error))
      }
    }
    if let delay {
      queue.asyncAfter(deadline: .now() + delay, execute: work)
    } else {
      queue.async(execute: work)
    }
  }

  /// - Parameter looksForReplacement: Whether to check for a replaced store always, and not only after a commit.
  private func withSession<Result>(
    thread: UInt, looksForReplacement: Bool = false, _ body: (Session) throws -> Result
  ) throws -> Result {
    var session = try openedSession()
    let earlier = owner.exchange(thread, ordering: .relaxed)
    defer { owner.store(earlier, ordering: .relaxed) }
    // A connection on loan is in use by another thread too.
    if earlier == 0, session.isReplaced(isCertain: looksForReplacement) { session = try reopened(session) }
    return try body(session)
  }

  /// A session for the store that replaced this one's.
  private func reopened(_ session: Session) throws -> Session {
    let replaced = session.connection.isReplaced(isCertain: true) ? session.connection.store : nil
    // Before the new one is opened, which may have an index of the same name.
    closeUntilUse(session)
    if let replaced { try database.follow(replaced: replaced) }
    return try openedSession()
  }

  private func closeUntilUse(_ session: Session) {
    state.session = nil
    state.cacheLimit = session.cache.limit
    state.isForLater.store(true, ordering: .releasing)
    try? session.connection.close()
  }

  /// Closes a connection to `store` until its next use, once it is not in use.
  func closeUntilUse(of store: Store) {
    queue.async { [self] in
      guard let session = state.session, session.connection.store === store, session.pinned == nil,
        owner.load(ordering: .relaxed) == 0
      else { return }
      closeUntilUse(session)
    }
  }

  private func openedSession() throws -> Session {
    if let session = state.session { return session }
    guard isForLater else { throw CofferError.closed }
    let session = try database.makeSession()
    try database.register(self)
    session.owner = self
    if let limit = state.cacheLimit { session.cache.limit = limit }
    state.session = session
    state.isForLater.store(false, ordering: .releasing)
    return session
  }

  /// The session, if the calling thread is inside a write transaction of this connection, and may write there.
  package var sessionOfThisThreadsWrite: Session? {
    guard isInTransaction, let session = state.session, session.isWriting, !database.core.isSanitizing else {
      return nil
    }
    return session
  }

  /// Runs `body`, which may begin transactions on this connection; called on its queue.
  package func betweenTransactions(_ body: () -> Void) {
    // Without a session, every call throws anyway.
    guard isInTransaction, let session = state.session else { return body() }
    session.betweenTransactions(body)
  }

  /// Whether the calling thread is inside a write transaction of this connection, including its observers and sanitizers.
  package var isInWriteTransaction: Bool { isInTransaction && state.session?.isInWriteTransaction ?? false }

  /// Whether the calling thread is inside a call of this connection.
  var isInTransaction: Bool { owner.load(ordering: .relaxed) == currentThread() }

  package func announceWrite() -> [FlushOfEarlierChanges] {
    state.willQueueWrite.withLock { $0 }.map { $0.callback() }
  }

  func onWillQueueWrite(_ owner: AnyObject, _ callback: (@Sendable () -> FlushOfEarlierChanges)?) {
    let owner = ObjectIdentifier(owner)
    state.willQueueWrite.withLock { list in
      list.removeAll { $0.owner == owner }
      if let callback { list.append(WriteListener(owner: owner, callback: callback)) }
    }
  }

  // MARK: Closing

  /// Waits for queued work, then closes.
  ///
  /// Called by the database.
  func close() throws {
    guard !isInTransaction else { throw CofferError.nestedTransaction }
    try queue.sync {
      state.isForLater.store(false, ordering: .releasing)
      guard let session = state.session else { return }
      state.session = nil
      try CofferError.translating { try session.connection.close() }
    }
  }
}

extension Connection: SessionOwner {
  func beginObservation() -> (any TransactionObservation)? { database.observers.begin(self) }

  func report(_ problem: SettingProblem, instead: String) { database.report(problem, instead: instead) }
}
