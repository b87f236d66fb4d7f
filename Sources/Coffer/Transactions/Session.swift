import CofferStorage
import Dispatch
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The tables of one connection, as the transactions see them, and the story of the transaction that is under way.
///
/// Used by one thread at a time, and no access to a property goes on during another: what each operation changes is not
/// checked for that, which was a thirtieth of a flush.
package final class Session {
  package let connection: SQLiteConnection
  package let core: DatabaseCore
  /// The connection that observers are given.
  weak var owner: Connection?
  package let items: Items
  let collections: Collections
  let history: History
  package let changeLog: ChangeLog
  let vaultTable: VaultTable

  /// What a thread is allowed to do here.
  enum Mode {
    /// Nothing; no transaction is under way.
    case idle
    case reading
    case writing
    /// Each operation is a transaction of its own.
    case autocommit
  }

  @exclusivity(unchecked) var mode = Mode.idle
  var isLongLived = false
  var hasSnapshotExpired = false
  /// The snapshot of the long-lived read.
  var pinnedSequence: Int64 = 0

  @exclusivity(unchecked) var transaction = TransactionState()
  /// When the next item expires, or sooner; `.max` where none will, nil where that is not known.
  var knownExpiry: Int64?
  /// What became of the item that was set last, which is what the next one's is guessed by; nil where it stayed as it was.
  @exclusivity(unchecked) var lastSet: ChangeKind?
  /// Where the change log ended last.
  var knownEnd: ChangeLog.End?
  /// The data version after the last commit of this connection, as of which the end of the log and the collections are
  /// known; nil where they are not.
  private var knownVersion: UInt32?
  /// Collections that were looked up; another process may remove a collection between two transactions.
  let knownCollections = KnownCollections()
  /// How often the vault had been unlocked when they were read.
  @exclusivity(unchecked) var knownUnlockCount = 0
  /// That of a task whose operations commit by themselves.
  var autocommitCancellation: Cancellation?
  /// Whether a sanitizer or an observer is being asked, from inside of which nothing may be written.
  private var isCallingOut = false
  /// Enumerations that are under way, which see the rows as of their start.
  @exclusivity(unchecked) var cursors: [Cursor] = []
  @exclusivity(unchecked) var cache = ItemCache()

  /// Whether the last write transaction had an effect, and so a commit.
  private(set) var hasCommitted = false

  /// Once in so many commits the size of the log is looked at.
  private static let logCheckInterval: Int64 = 16

  /// Of which of the stores that followed each other under one name.
  let generation: Int

  /// Whether another store has the name of this one's now, to which the next transaction belongs.
  ///
  /// - Parameter isCertain: Whether to look in any case, and not only when a commit was made since the last look.
  func isReplaced(isCertain: Bool) -> Bool {
    !isLongLived
      && (generation != core.generation.load(ordering: .relaxed) || connection.isReplaced(isCertain: isCertain))
  }

  init(connection: SQLiteConnection, core: DatabaseCore, generation: Int = 0) {
    self.generation = generation
    self.connection = connection
    self.core = core
    items = Items(connection: connection)
    collections = Collections(connection: connection)
    history = History(connection: connection)
    changeLog = ChangeLog(connection: connection)
    vaultTable = VaultTable(connection: connection)
  }

  package func snapshot() throws -> UInt64 {
    try UInt64(changeLog.lastSequence())
  }

  // MARK: Read transactions

  package func read<Result>(cancellation: Cancellation? = nil, _ body: () throws -> Result) throws -> Result {
    try cancellation?.check()
    if isLongLived {
      guard !hasSnapshotExpired else { throw CofferError.snapshotExpired }
      let earlier = (mode, transaction.cancellation)
      defer { (mode, transaction.cancellation) = earlier }
      (mode, transaction.cancellation) = (.reading, cancellation)
      return try body()
    }
    try beginRead()
    let earlier = mode
    mode = .reading
    transaction.cancellation = cancellation
    defer {
      mode = earlier
      transaction.cancellation = nil
    }
    do {
      let result = try body()
      try cancellation?.check()
      try CofferError.translating {
        try requireTransaction()
        try connection.commit()
      }
      return result
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  func beginRead() throws {
    knownCollections.removeAll()
    transaction = TransactionState()
    transaction.time = core.clock.now
    try CofferError.translating { try connection.beginRead() }
  }

  // MARK: Write transactions

  /// - Parameters:
  ///   - willCommit: Runs before the commit, with the write lock held; gets nil when there is nothing to commit.
  ///   - onSuccess: Runs when it has been committed, before any notice, with the number of the commit; nil when there
  ///     was nothing to commit.
  func write<Result>(
    _ synchronization: SQLiteConnection.Synchronization, cancellation: Cancellation? = nil,
    willCommit: (CommitIdentity?) -> Void = { _ in }, onSuccess: (Int64?) -> Void = { _ in },
    _ body: () throws -> Result
  ) throws -> Result {
    try requireWritable()
    try cancellation?.check()
    let stopwatch = core.stopwatch()
    return try core.gate.pass(
      timeout: core.options.busyTimeout, lending: owner?.lending, cancellation: cancellation
    ) {
      // It may have waited long, and the connection was lent meanwhile.
      try requireWritable()
      try cancellation?.check()
      try beginWrite(synchronization, cancellation)
      stopwatch?.record { .lockWait($0) }
      refreshKnown()
      let time = core.clock.now
      let earlier = mode
      defer { mode = earlier }
      try removeExpired(at: time) {
        try beginWrite(synchronization, cancellation)
        // Another process may have committed between.
        refreshKnown()
      }
      begin(cancellation, at: time)
      do {
        let result = try body()
        let sequence = try finish(willCommit)
        if !transaction.isRolledBack { onSuccess(sequence) }
        end(sequence: sequence, isCommitted: !transaction.isRolledBack)
        // Observers may have written meanwhile.
        hasCommitted = sequence != nil
        return result
      } catch {
        // The first error counts; SQLite may have rolled back by itself.
        try? connection.rollback()
        end(sequence: nil, isCommitted: false)
        throw error
      }
    }
  }

  private func beginWrite(
    _ synchronization: SQLiteConnection.Synchronization, _ cancellation: Cancellation?
  ) throws {
    try takeWriteLock(synchronization, cancellation)
    guard !core.hasChain.load(ordering: .relaxed) else { return }
    // A store of a former version; or a program of a newer one has seen to it already.
    do {
      try CofferError.translating { try Schema.upgrade(connection) }
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  private func takeWriteLock(
    _ synchronization: SQLiteConnection.Synchronization, _ cancellation: Cancellation?
  ) throws {
    guard let cancellation else {
      return try CofferError.translating { try connection.beginWrite(synchronization) }
    }
    do {
      try CofferError.translating {
        try connection.whileWaiting({ cancellation.wait(for: .milliseconds($0)) }) {
          try connection.beginWrite(synchronization)
        }
      }
    } catch {
      try cancellation.check()
      throw error
    }
  }

  /// Throws where no write transaction may begin.
  ///
  /// On a read-only database SQLite would make a read transaction of it.
  func requireWritable() throws {
    guard !core.options.isReadOnly else { throw CofferError.readOnly }
    guard !isLongLived else { throw CofferError.longLivedReadTransaction }
  }

  private func refreshKnown() {
    if knownVersion == nil || knownVersion != connection.dataVersion { forgetKnown() }
  }

  func begin(_ cancellation: Cancellation?, at time: Int64) {
    mode = .writing
    hasCommitted = false
    transaction = TransactionState()
    transaction.cancellation = cancellation
    transaction.time = time
    transaction.observation.entries = core.observers.begin()
    transaction.isFeedObserved = core.feed.isObserved
  }

  private func forgetKnown() {
    knownVersion = nil
    knownEnd = nil
    knownExpiry = nil
    knownCollections.removeAll()
  }

  /// Commits, or rolls back what has no effect.
  ///
  /// - Returns: The number of the commit, if there was one.
  func finish(_ willCommit: (CommitIdentity?) -> Void) throws -> Int64? {
    try checkCancellation()
    guard !transaction.isRolledBack else {
      try CofferError.translating { try connection.rollback() }
      return nil
    }
    try CofferError.translating { try requireTransaction() }
    let observation = transaction.observation
    try callingOut { try observation.willCommit() }
    try checkCancellation()
    guard !transaction.changes.isEmpty || transaction.changesDeclarations else {
      willCommit(nil)
      try CofferError.translating { try connection.rollback() }
      return nil
    }
    // Someone may have begun to listen since the transaction began.
    let isFeedObserved = core.feed.isObserved
    var committed: Int64?
    do {
      try CofferError.translating {
        let end = try changeLog.append(
          transaction.changes, after: endOfLog(), time: transaction.time, writer: core.writer, author: authorText
        ) { identity in
          committed = identity.sequence
          willCommit(identity)
          guard isFeedObserved else { return }
          core.commits.willCommit(
            identity.sequence,
            CommitLog.OwnCommit(
              connection: owner?.id, changes: transaction.changes, names: transaction.changedNames,
              customObject: transaction.customObject))
        }
        if end.sequence % ChangeLog.sweepInterval == 0 { try history.dropOld(time: transaction.time) }
        let envelope = core.witness == nil ? nil : connection.store?.envelopeSequence
        try connection.commit()
        core.hasChain.store(true, ordering: .relaxed)
        knownEnd = end
        if let envelope { noteForWitness(end, envelope) }
        knownVersion = connection.dataVersion
      }
    } catch {
      if let committed, isFeedObserved { core.commits.didNotCommit(committed) }
      throw error
    }
    hasCommitted = true
    return committed
  }

  /// - Parameter envelope: Its sequence as of the write lock, when nobody else was changing it.
  private func noteForWitness(_ end: ChangeLog.End, _ envelope: UInt64) {
    guard let store = connection.store else { return }
    core.witness?.didCommit(
      Witness(envelope: envelope, commit: end.sequence, link: end.link), isSynced: connection.syncsCommits, store)
  }

  /// Has everything committed so far on the disk when it returns.
  func synchronizeLog() throws {
    try connection.synchronizeLog()
    if let store = connection.store { core.witness?.didSync(store) }
  }

  /// Tells everyone how the transaction ended.
  func end(sequence: Int64?, isCommitted: Bool) {
    mode = .idle
    let ended = transaction
    transaction = TransactionState()
    if let sequence {
      // Everything of this transaction is in the cache as it is now.
      if ended.isCacheCurrent { cache.snapshot = sequence }
      connection.announceCommit()
      core.feed.didCommit()
      if connection.hasOldEpochs { core.onUnfinishedRotation() }
      if let knownExpiry, knownExpiry != .max { core.expiries.expect(at: knownExpiry) }
      if core.isMetered || sequence % Self.logCheckInterval == 0 {
        let byteCount = (try? connection.logByteCount) ?? 0
        core.checkLog(byteCount: byteCount)
        core.options.meter?.record(.log(byteCount: byteCount))
      }
    } else {
      // What this transaction knew may have been its own doing.
      forgetKnown()
      if !ended.changes.isEmpty || ended.isRolledBack { cache.removeAll() }
    }
    let entries = ended.observation.entries
    guard !entries.isEmpty || !ended.completions.isEmpty else { return }
    core.observers.end(entries)
    let owner = owner
    var deliveries: [@Sendable () -> Void] = entries.map { entry in
      {
        guard let owner, let observer = entry.observer else { return }
        if isCommitted { observer.databaseDidCommit(owner) } else { observer.databaseDidRollback(owner) }
      }
    }
    for completion in ended.completions {
      deliveries.append {
        guard let queue = completion.queue else { return completion.block(isCommitted) }
        queue.async { completion.block(isCommitted) }
      }
    }
    betweenTransactions { core.gate.deliver(deliveries) }
  }

  /// Whether this thread, inside a call of the same connection, may begin another transaction: while the end of one is
  /// delivered, or in the completion of an asynchronous one.
  var allowsAnotherTransaction: Bool { mode == .idle && isBetweenTransactions }

  private var isBetweenTransactions = false

  /// Runs `body`, which may begin transactions on this connection.
  func betweenTransactions(_ body: () -> Void) {
    let earlier = isBetweenTransactions
    isBetweenTransactions = true
    defer { isBetweenTransactions = earlier }
    body()
  }

  /// Whether a write transaction is under way in which this thread may go on writing.
  var isWriting: Bool { (mode == .writing || mode == .autocommit) && !isCallingOut }

  /// Whether a write transaction is under way, also where it may not be written in.
  var isInWriteTransaction: Bool { mode == .writing }

  func rollBack() {
    transaction.isRolledBack = true
    transaction.undelivered = []
  }

  func addCompletion(_ queue: DispatchQueue?, _ block: @escaping @Sendable (Bool) -> Void) {
    guard mode == .autocommit else { return transaction.completions.append((queue, block)) }
    if let queue { queue.async { block(true) } } else { block(true) }
  }

  /// Who makes this transaction, as the tables have it.
  var authorText: String {
    if let writer = transaction.writer { return writer }
    if let actor = transaction.actor { return Author(actor: actor).text }
    return core.authorText
  }

  // MARK: Operations

  /// Runs `body`, which reads.
  package func reading<Result>(_ body: () throws -> Result) throws -> Result {
    if mode == .autocommit { return try read(cancellation: autocommitCancellation) { try reading(body) } }
    return try CofferError.translating {
      try requireTransaction()
      try checkCancellation()
      return try body()
    }
  }

  /// Runs `body`, which changes items and says so with `record`; observers get it when it has succeeded.
  @inline(__always)
  func changing<Result>(_ body: () throws -> Result) throws -> Result {
    if try needsOwnTransaction() { return try inTransaction { try changingInTransaction(body) } }
    return try changingInTransaction(body)
  }

  /// Whether what is to be changed now is a transaction of its own.
  @inline(__always)
  func needsOwnTransaction() throws -> Bool {
    guard !isCallingOut else { throw CofferError.nestedTransaction }
    return mode == .autocommit
  }

  /// Does what `changing` does inside of a transaction.
  ///
  /// Inlined, so that what `body` refers to is not copied for it: that was a third of all counting of references in a
  /// flush.
  @inline(__always)
  func changingInTransaction<Result>(_ body: () throws -> Result) throws -> Result {
    let earlier = transaction.undelivered.count
    do {
      try requireTransaction()
      try checkCancellation()
      if !cursors.isEmpty { try loadRestOfCursors() }
      let result = try undoable(body)
      deliver()
      return result
    } catch {
      forgetUndelivered(after: earlier)
      throw CofferError.translated(error)
    }
  }

  /// Lets the enumerations that are under way read on before something changes.
  private func loadRestOfCursors() throws {
    for cursor in cursors { try cursor.loadRest() }
  }

  @inline(__always)
  private func undoable<Result>(_ body: () throws -> Result) rethrows -> Result {
    transaction.undoDepth += 1
    defer { transaction.undoDepth -= 1 }
    return try body()
  }

  private func forgetUndelivered(after count: Int) {
    // There may be fewer: a rollback of the transaction forgets all of them.
    transaction.undelivered.removeLast(max(0, transaction.undelivered.count - count))
  }

  /// Runs `body`, which changes several items: all of them, or none.
  func changingTogether<Result>(_ body: () throws -> Result) throws -> Result {
    guard mode != .autocommit else { return try inTransaction { try changing(body) } }
    return try savepoint { try changing(body) }
  }

  /// Runs `body` in a savepoint, which an error undoes.
  func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    guard !isCallingOut, mode == .writing else { throw CofferError.nestedTransaction }
    let (changes, names) = (transaction.changes, transaction.changedNames)
    let changesDeclarations = transaction.changesDeclarations
    let undeliveredCount = transaction.undelivered.count
    try CofferError.translating {
      try requireTransaction()
      try loadRestOfCursors()
      try connection.statement("SAVEPOINT s").run()
    }
    do {
      let result = try undoable(body)
      try CofferError.translating { try connection.statement("RELEASE s").run() }
      deliver()
      return result
    } catch {
      (transaction.changes, transaction.changedNames) = (changes, names)
      transaction.changesDeclarations = changesDeclarations
      forgetUndelivered(after: undeliveredCount)
      // Of collections that were made inside, the ids are gone; of items, the values.
      knownCollections.removeAll()
      cache.removeAll()
      do {
        if connection.isInTransaction {
          try connection.statement("ROLLBACK TO s").run()
          try connection.statement("RELEASE s").run()
        }
      } catch {
        // What cannot be undone in part is undone as a whole; the first error counts.
        try? connection.rollback()
      }
      throw error
    }
  }

  /// Tells observers what can no longer be undone by itself.
  private func deliver() {
    guard transaction.undoDepth == 0, !transaction.undelivered.isEmpty else { return }
    let changes = transaction.undelivered
    transaction.undelivered = []
    let observation = transaction.observation
    callingOut { for change in changes { observation.deliver(change, core) } }
  }

  func callingOut<Result>(_ body: () throws -> Result) rethrows -> Result {
    let earlier = isCallingOut
    isCallingOut = true
    defer { isCallingOut = earlier }
    return try body()
  }

  private func checkCancellation() throws {
    try transaction.cancellation?.check()
  }

  /// SQLite ends a transaction by itself on some errors; what followed would read other snapshots, and commit one by one.
  func requireTransaction() throws {
    guard connection.isInTransaction else {
      throw StorageError.sqlite(code: 4, message: "the transaction was rolled back after an earlier error")
    }
  }
}
