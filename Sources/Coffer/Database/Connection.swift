import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// A connection to a database: transactions one after another, each seeing one snapshot.
///
/// Several connections of one database work side by side; readers never wait for the writer, nor it for them. Calls on
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
/// In asynchronous code the same names have asynchronous forms, which wait without blocking a thread:
///
/// ```swift
/// let theme: String? = try await connection.read { try $0.object(forKey: "theme", inCollection: "ui") }
/// ```
public final class Connection: Sendable, Identifiable {
  /// Tells connections apart, as long as they live.
  public struct ID: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  /// What tells this connection from others, in a ``Commit`` for instance.
  public let id: ID
  /// The database this connection belongs to.
  public let database: Database
  /// Runs everything that uses `state`, in the order of the calls.
  private let queue = DispatchQueue(label: "coffer.connection")
  /// The thread that is inside a call, to tell a nested transaction from one that has to wait.
  private let owner = Atomic<UInt>(0)
  let lending = Lending()
  private let state: State

  /// Writes what a proxy was given before a write was queued.
  typealias FlushOfEarlierChanges = (Session) throws -> Void

  private struct WriteListener {
    let owner: ObjectIdentifier
    let callback: @Sendable () -> FlushOfEarlierChanges
  }

  /// Unchecked: only `queue` touches the session, or who has borrowed the connection from it; the rest is atomic or locked.
  private final class State: @unchecked Sendable {
    var session: Session?
    /// Whether it has not been used yet, and is opened with the first use.
    let isForLater: Atomic<Bool>
    /// Called before a write is queued on this connection, so that a proxy can close its open batch.
    let willQueueWrite = Lock<[WriteListener]>([])

    init(session: Session?) {
      self.session = session
      isForLater = Atomic(session == nil)
    }
  }

  private static let lastNumber = Atomic<UInt64>(0)

  /// Whether it has not been used yet, and has opened nothing.
  var isForLater: Bool { state.isForLater.load(ordering: .acquiring) }

  /// - Parameter session: nil to open it with the first use.
  init(database: Database, session: sending Session?) {
    self.database = database
    id = ID(number: Self.lastNumber.add(1, ordering: .relaxed).newValue)
    state = State(session: session)
    state.session?.owner = self
  }

  // MARK: Transactions

  /// Runs `body` in a read transaction, which sees one snapshot from its first read to its end.
  ///
  /// A local function, a stored closure or a `Task` in `body` that uses the transaction makes the compiler of Swift 6.3.1
  /// crash; `{ (transaction: borrowing _) in` has it say what is wrong, if anything is. See <doc:GettingStarted>.
  ///
  /// - Throws: What `body` throws; `CofferError.nestedTransaction` inside another transaction of this connection;
  ///   `.closed`, `.damaged`, `.inputOutput` and their like; `.snapshotExpired` in a long-lived read that was ended.
  public func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result {
    try perform { session in
      try session.read { try body(ReadTransaction(context: TransactionContext(session: session))) }
    }
  }

  /// Runs `body` in a write transaction and commits, synced to disk when this returns.
  ///
  /// An error that `body` throws rolls back and is thrown on.
  ///
  /// The write lock is taken at the start (`BEGIN IMMEDIATE`), so that nothing read inside can change before the commit.
  ///
  /// What a proxy over this connection was given before the call is written before it; where that fails, this fails too.
  ///
  /// A local function, a stored closure or a `Task` in `body` that uses the transaction makes the compiler of Swift 6.3.1
  /// crash; `{ (transaction: borrowing _) in` has it say what is wrong, if anything is. See <doc:GettingStarted>.
  ///
  /// - Throws: What `body` throws; `CofferError.busy` when the lock is not available within the busy timeout;
  ///   `.readOnly` on a database that is only read, `.nestedTransaction` inside a write of the same database,
  ///   `.longLivedReadTransaction` in a long-lived read, `.diskFull`, `.inputOutput` and their like. After any error nothing
  ///   was changed.
  public func readWrite<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result {
    try checkMayWrite()
    let earlierChanges = announceWrite()
    var hasBegun = false
    func write() throws -> Result {
      try perform { session in
        // Usually written by now; not so where a flush has failed, and must not be tried again after this write.
        for flush in earlierChanges { try flush(session) }
        return try session.write(.full) {
          hasBegun = true
          return try body(ReadWriteTransaction(context: TransactionContext(session: session)))
        }
      }
    }
    do {
      return try write()
    } catch CofferError.storeReplaced where !hasBegun {
      // While it waited for the write lock.
      return try write()
    }
  }

  /// How many of the items it read last the connection keeps in memory; 250 unless set, 0 for none.
  ///
  /// The cache never shows anything but the snapshot of a transaction.
  ///
  /// - Throws: `CofferError.nestedTransaction` inside a transaction of this connection; `.closed`.
  public func setCacheLimit(_ limit: Int) throws {
    try perform { $0.cache.limit = max(0, limit) }
  }

  // MARK: For other parts of Coffer

  /// Runs `body` on the connection, after what was queued before.
  package func perform<Result>(_ body: (Session) throws -> Result) throws -> Result {
    try database.checkUsable()
    let thread = currentThread()
    if owner.load(ordering: .relaxed) == thread {
      // This thread is on the queue already.
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

  /// Throws where a write by this thread would wait for itself: inside a transaction of this connection, or a write of
  /// this database; and in a sanitizer.
  func checkMayWrite() throws {
    let gate = database.core.gate
    if gate.isHeldByThisThread && !gate.isDelivering || database.core.isSanitizing {
      throw CofferError.nestedTransaction
    }
    if isInTransaction, let session = state.session, !session.allowsAnotherTransaction {
      throw CofferError.nestedTransaction
    }
  }

  /// Runs `body` on the connection later, after what was queued before.
  ///
  /// It runs in any case, with the error when the connection cannot be used.
  func enqueue(
    after delay: DispatchTimeInterval? = nil, _ body: @escaping @Sendable (Swift.Result<Session, any Error>) -> Void
  ) {
    let work: @Sendable () -> Void = {
      do {
        try self.database.checkUsable()
        // Mostly for writes, beside which a look at the file is little.
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

  /// - Parameter looksForReplacement: Whether to look in any case, and not only after a commit, if the store was replaced.
  private func withSession<Result>(
    thread: UInt, looksForReplacement: Bool = false, _ body: (Session) throws -> Result
  ) throws -> Result {
    var session = try openedSession()
    let earlier = owner.exchange(thread, ordering: .relaxed)
    defer { owner.store(earlier, ordering: .relaxed) }
    // One that is lent is in the hands of another thread, too.
    if earlier == 0, session.isReplaced(isCertain: looksForReplacement) { session = try reopened(session) }
    return try body(session)
  }

  /// A session in the store that was put in the place of this one's.
  private func reopened(_ session: Session) throws -> Session {
    if let store = session.connection.store { try database.follow(replaced: store) }
    let limit = session.cache.limit
    // Should it not open, the next use tries again.
    state.session = nil
    state.isForLater.store(true, ordering: .releasing)
    try? session.connection.close()
    let new = try openedSession()
    new.cache.limit = limit
    return new
  }

  private func openedSession() throws -> Session {
    if let session = state.session { return session }
    guard isForLater else { throw CofferError.closed }
    let session = try database.makeSession()
    try database.register(self)
    session.owner = self
    state.session = session
    state.isForLater.store(false, ordering: .releasing)
    return session
  }

  /// The session, when the calling thread is inside a write transaction of this connection, and may write there.
  var sessionOfThisThreadsWrite: Session? {
    guard isInTransaction, let session = state.session, session.isWriting, !database.core.isSanitizing else {
      return nil
    }
    return session
  }

  /// Runs `body`, which may begin transactions on this connection; called on its queue.
  func betweenTransactions(_ body: () -> Void) {
    // Without a session, everything says so.
    guard isInTransaction, let session = state.session else { return body() }
    session.betweenTransactions(body)
  }

  /// Whether the calling thread is inside a write transaction of this connection, be it in an observer or a sanitizer.
  var isInWriteTransaction: Bool { isInTransaction && state.session?.isInWriteTransaction ?? false }

  /// Whether the calling thread is inside a call of this connection.
  var isInTransaction: Bool { owner.load(ordering: .relaxed) == currentThread() }

  func announceWrite() -> [FlushOfEarlierChanges] {
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

  /// Waits for what is queued, then closes.
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
