import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

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
public final class Connection: Sendable {
  /// The database this connection belongs to.
  public let database: Database
  /// Runs everything that uses `state`, in the order of the calls.
  private let queue = DispatchQueue(label: "coffer.connection")
  /// The thread that is inside a transaction, to tell a nested one from one that has to wait.
  private let owner = Atomic<UInt>(0)
  private let state: State

  /// Writes what a proxy was given before a write was queued.
  typealias FlushOfEarlierChanges = (Session) throws -> Void

  /// Unchecked: only `queue` touches it.
  private final class State: @unchecked Sendable {
    var session: Session?
    /// Told before a write is queued on this connection, so that a proxy can close its open batch.
    let willQueueWrite = Lock<[ObjectIdentifier: @Sendable () -> FlushOfEarlierChanges]>([:])

    init(session: Session) {
      self.session = session
    }
  }

  init(database: Database, session: sending Session) {
    self.database = database
    state = State(session: session)
  }

  // MARK: Transactions

  /// Runs `body` in a read transaction, which sees one snapshot from its first read to its end.
  ///
  /// - Throws: What `body` throws; `CofferError.nestedTransaction` inside another transaction of this connection;
  ///   `.closed`, `.damaged`, `.inputOutput` and their like.
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
  /// - Throws: What `body` throws; `CofferError.busy` when the lock is not to be had within the busy timeout;
  ///   `.nestedTransaction`, `.diskFull`, `.inputOutput` and their like. After any error nothing was changed.
  public func readWrite<Result>(_ body: (borrowing ReadWriteTransaction) throws -> Result) throws -> Result {
    let earlierChanges = announceWrite()
    return try perform { session in
      // Usually written by now; not so where a flush has failed, and must not be tried again after this write.
      for flush in earlierChanges { try flush(session) }
      return try session.write(.full) { try body(ReadWriteTransaction(context: TransactionContext(session: session))) }
    }
  }

  // MARK: For the proxy

  /// Runs `body` on the connection, after what was queued before.
  func perform<Result>(_ body: (Session) throws -> Result) throws -> Result {
    try database.checkUsable()
    let thread = Self.currentThread
    guard owner.load(ordering: .relaxed) != thread else { throw CofferError.nestedTransaction }
    return try queue.sync {
      try withSession(thread: thread, body)
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
        try self.withSession(thread: Self.currentThread) { body(.success($0)) }
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

  private func withSession<Result>(thread: UInt, _ body: (Session) throws -> Result) throws -> Result {
    guard let session = state.session else { throw CofferError.closed }
    owner.store(thread, ordering: .relaxed)
    defer { owner.store(0, ordering: .relaxed) }
    return try body(session)
  }

  /// Whether the calling thread is inside a transaction of this connection.
  var isInTransaction: Bool { owner.load(ordering: .relaxed) == Self.currentThread }

  private static var currentThread: UInt {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      UInt(pthread_self())
    #endif
  }

  private func announceWrite() -> [FlushOfEarlierChanges] {
    state.willQueueWrite.withLock { Array($0.values) }.map { $0() }
  }

  func onWillQueueWrite(_ owner: AnyObject, _ callback: (@Sendable () -> FlushOfEarlierChanges)?) {
    let key = ObjectIdentifier(owner)
    state.willQueueWrite.withLock { $0[key] = callback }
  }

  // MARK: Closing

  /// Waits for what is queued, then closes.
  ///
  /// Called by the database.
  func close() throws {
    guard !isInTransaction else { throw CofferError.nestedTransaction }
    try queue.sync {
      guard let session = state.session else { return }
      state.session = nil
      try CofferError.translating { try session.connection.close() }
    }
  }
}
