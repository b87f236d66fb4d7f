import CofferStorage
import Dispatch
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The tables of one connection, as its transactions see them, and the state of the current transaction.
///
/// It is used by one thread at a time, without overlapping accesses to a property. The properties that each operation
/// changes are not checked for that: the checks took a thirtieth of a flush.
package final class Session {
  package let connection: SQLiteConnection
  package let core: DatabaseCore
  /// The connection that it is of.
  weak var owner: (any SessionOwner)?
  package let items: Items
  let collections: Collections
  let history: History
  package let changeLog: ChangeLog
  let vaultTable: VaultTable

  /// What the current thread may do here.
  enum Mode {
    /// Nothing; there is no transaction.
    case idle
    case reading
    case writing
    /// Each operation is a separate transaction.
    case autocommit
  }

  @exclusivity(unchecked) var mode = Mode.idle
  var isLongLived = false
  var hasSnapshotExpired = false
  /// The snapshot of the long-lived read.
  var pinnedNumber: CommitNumber = 0

  @exclusivity(unchecked) var transaction = TransactionState()
  /// When the next item expires, or an earlier time; `.max` if none will, nil if unknown.
  var knownExpiry: Int64?
  /// What the last set did to its item, as a guess for the next one; nil if the item stayed the same.
  @exclusivity(unchecked) var lastSet: ChangeKind?
  /// The last known end of the change log.
  var knownEnd: ChangeLog.End?
  /// The data version after this connection's last commit, for which the end of the log and the collections are known; nil
  /// if they are not.
  private var knownVersion: UInt32?
  /// The renames whose former names are kept; nil if unknown.
  private var knownRenames: Renames?
  /// Whether there are any, once a write transaction has begun.
  @exclusivity(unchecked) private(set) var hasRenames = false
  /// Collections that were looked up; another process may remove a collection between two transactions.
  let knownCollections = KnownCollections()
  /// How often the vault had been unlocked when they were looked up.
  @exclusivity(unchecked) var knownUnlockCount = 0
  /// The cancellation of a task whose operations are committed separately.
  var autocommitCancellation: Cancellation?
  /// Whether a sanitizer or an observer is running, inside which nothing may be written.
  private var isCallingOut = false
  /// Running enumerations, which see the rows as of their start.
  @exclusivity(unchecked) var cursors: [Cursor] = []
  @exclusivity(unchecked) var cache = ItemCache()

  /// Whether the last write transaction changed anything, and so made a commit.
  private(set) var hasCommitted = false

  /// The number of commits between checks of the log's size.
  private static let logCheckInterval: Int64 = 16

  /// Which of the successive stores at this path it belongs to.
  let generation: Int

  /// Whether another store has replaced this one, or it is an image that has changed, so that the next transaction has to use
  /// that.
  ///
  /// - Parameter isCertain: Whether to check always, and not only after a commit since the last check.
  func isReplaced(isCertain: Bool) -> Bool {
    !isLongLived
      && (generation != core.generation.load(ordering: .relaxed) || connection.isOfOldImage
        || connection.isReplaced(isCertain: isCertain))
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

  /// The number of the newest commit that this connection sees.
  package func commitNumber() throws -> CommitNumber {
    try changeLog.lastNumber()
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
    knownRenames = nil
    transaction = TransactionState()
    transaction.time = core.clock.now
    try core.faults?.checkReading()
    try CofferError.translating { try connection.beginRead() }
  }

  // MARK: Write transactions

  /// - Parameters:
  ///   - willCommit: Runs before the commit, with the write lock held; receives nil if there is nothing to commit.
  ///   - onSuccess: Runs after the commit, before any notification, with the number of the commit; nil if there was nothing
  ///     to commit.
  package func write<Result>(
    _ synchronization: SQLiteConnection.Synchronization, cancellation: Cancellation? = nil,
    willCommit: (CommitIdentity?) -> Void = { _ in }, onSuccess: (CommitNumber?) -> Void = { _ in },
    _ body: () throws -> Result
  ) throws -> Result {
    try requireWritable()
    try cancellation?.check()
    try core.faults?.checkWriting()
    let stopwatch = core.stopwatch()
    return try core.gate.pass(
      timeout: core.options.busyTimeout, lending: owner?.lending, cancellation: cancellation
    ) {
      // The wait may have been long, and the connection was lent meanwhile.
      try requireWritable()
      try cancellation?.check()
      try beginWrite(synchronization, cancellation)
      stopwatch?.record { .lockWait($0) }
      let time = core.clock.now
      let earlier = mode
      defer { mode = earlier }
      try removeExpired(at: time) {
        // Another process may have committed in between.
        try beginWrite(synchronization, cancellation)
      }
      begin(cancellation, at: time)
      do {
        let result = try body()
        let number = try finish(willCommit)
        if !transaction.isRolledBack { onSuccess(number) }
        end(number: number, isCommitted: !transaction.isRolledBack)
        // Observers may have written meanwhile.
        hasCommitted = number != nil
        return result
      } catch {
        // The first error is the one to report; SQLite may have rolled back by itself.
        try? connection.rollback()
        if case CofferError.diskFull = error { connection.checkpointForRoom() }
        end(number: nil, isCommitted: false)
        throw error
      }
    }
  }

  private func beginWrite(
    _ synchronization: SQLiteConnection.Synchronization, _ cancellation: Cancellation?
  ) throws {
    try takeWriteLock(synchronization, cancellation)
    do {
      try refreshKnown()
      if let witness = core.witness { try CofferError.translating { try witness.compare(connection) } }
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

  /// Throws if no write transaction may begin.
  ///
  /// On a read-only database, SQLite would begin a read transaction instead.
  func requireWritable() throws {
    guard !core.options.isReadOnly else { throw CofferError.readOnly }
    guard !isLongLived else { throw CofferError.longLivedReadTransaction }
  }

  private func refreshKnown() throws {
    if knownVersion == nil || knownVersion != connection.dataVersion { forgetKnown() }
    if knownRenames == nil { try loadRenames() }
  }

  /// The renames whose former names are kept, in the current transaction.
  func renames() throws -> Renames { try knownRenames ?? loadRenames() }

  /// Reads the renames again: another process may have committed, or this transaction has changed them.
  @discardableResult
  func loadRenames() throws -> Renames {
    let renames = Renames(try CofferError.translating { try RenameTable(connection: connection).all() })
    knownRenames = renames
    hasRenames = !renames.all.isEmpty
    if hasRenames { core.hasRenames.store(true, ordering: .relaxed) }
    return renames
  }

  func begin(_ cancellation: Cancellation?, at time: Int64) {
    mode = .writing
    hasCommitted = false
    transaction = TransactionState()
    transaction.cancellation = cancellation
    transaction.time = time
    transaction.observation = owner?.beginObservation()
    transaction.isFeedObserved = core.feed.isObserved
  }

  private func forgetKnown() {
    knownVersion = nil
    knownEnd = nil
    knownExpiry = nil
    knownRenames = nil
    knownCollections.removeAll()
  }

  /// Commits, or rolls back if there is nothing to commit.
  ///
  /// - Returns: The number of the commit, if there was one.
  func finish(_ willCommit: (CommitIdentity?) -> Void) throws -> CommitNumber? {
    try checkCancellation()
    guard !transaction.isRolledBack else {
      try CofferError.translating { try connection.rollback() }
      return nil
    }
    try CofferError.translating { try requireTransaction() }
    try letNamesFollow()
    if let observation = transaction.observation { try callingOut { try observation.willCommit(self) } }
    try checkCancellation()
    guard !transaction.changes.isEmpty || transaction.changesDeclarations || !transaction.actions.isEmpty else {
      willCommit(nil)
      try CofferError.translating { try connection.rollback() }
      return nil
    }
    try CofferError.translating { try noteUnrecordedEnvelope() }
    // A listener may have been added since the transaction began.
    let isFeedObserved = core.feed.isObserved
    var committed: CommitNumber?
    do {
      try CofferError.translating {
        let end = try changeLog.append(
          transaction.changes, after: endOfLog(), time: transaction.time, writer: core.writer,
          author: transaction.isExpiry ? nil : authorText, action: CommitAction.text(of: transaction.actions)
        ) { identity in
          committed = identity.number
          willCommit(identity)
          guard isFeedObserved else { return }
          core.commits.willCommit(
            identity.number,
            CommitLog.OwnCommit(
              connection: owner?.id, changes: transaction.changes, names: transaction.changedNames,
              attachment: transaction.attachment))
        }
        if end.number % ChangeLog.sweepInterval == 0 { try history.dropOld(time: transaction.time) }
        let envelope = core.witness == nil ? nil : connection.store?.envelopeSequence
        try connection.commit()
        didRecordEnvelope()
        knownEnd = end
        if let envelope { noteForWitness(end, envelope) }
        knownVersion = connection.dataVersion
        connection.comparedVersion = knownVersion
      }
    } catch {
      if let committed, isFeedObserved { core.commits.didNotCommit(committed) }
      throw error
    }
    hasCommitted = true
    return committed
  }

  /// - Parameter envelope: Its number as of the write lock, while no one else could change it.
  private func noteForWitness(_ end: ChangeLog.End, _ envelope: UInt64) {
    guard let store = connection.store else { return }
    core.witness?.didCommit(
      Witness(envelope: envelope, commit: end.number, link: end.link), isSynced: connection.syncsCommits, store)
  }

  /// Syncs the log: everything committed so far is on disk when this returns.
  func synchronizeLog() throws {
    try connection.synchronizeLog()
    if let store = connection.store { core.witness?.didSync(store) }
  }

  /// Notifies observers of the end of the transaction.
  func end(number: CommitNumber?, isCommitted: Bool) {
    mode = .idle
    let ended = transaction
    transaction = TransactionState()
    if let number {
      // The cache includes all changes of this transaction.
      if ended.isCacheCurrent { cache.commit = number }
      connection.announceCommit()
      core.feed.didCommit()
      if connection.hasOldEpochs { core.onUnfinishedRotation() }
      if let knownExpiry, knownExpiry != .max { core.expiries.expect(at: knownExpiry) }
      if core.isMetered || number % Self.logCheckInterval == 0 {
        let byteCount = (try? connection.logByteCount) ?? 0
        core.checkLog(byteCount: byteCount)
        core.options.meter?.record(.log(byteCount: byteCount))
      }
    } else {
      // What this transaction cached may include its own changes.
      forgetKnown()
      if !ended.changes.isEmpty || ended.isRolledBack { cache.removeAll() }
    }
    guard ended.observation != nil || !ended.completions.isEmpty else { return }
    var deliveries = ended.observation?.end(isCommitted: isCommitted) ?? []
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

  /// Whether there is a write transaction in which this thread may write.
  var isWriting: Bool { (mode == .writing || mode == .autocommit) && !isCallingOut }

  /// Whether there is a write transaction, even if it may not be written in now.
  var isInWriteTransaction: Bool { mode == .writing }

  package func rollBack() {
    transaction.isRolledBack = true
    transaction.undelivered = []
  }

  /// The object for observers of the commit in this process.
  package var attachment: (any Sendable)? {
    get { transaction.attachment }
    set { transaction.attachment = newValue }
  }

  package func addCompletion(_ queue: DispatchQueue?, _ block: @escaping @Sendable (Bool) -> Void) {
    guard mode == .autocommit else { return transaction.completions.append((queue, block)) }
    if let queue { queue.async { block(true) } } else { block(true) }
  }

  /// Notes in the current transaction what it does besides changing keys; so it is committed in any case.
  func note(_ action: CommitAction) { transaction.actions.append(action) }

  /// The author of this transaction, as stored in the tables.
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

  /// Runs `body`, which changes items and reports them with `record`; observers are notified when it has succeeded.
  @inline(__always)
  func changing<Result>(_ body: () throws -> Result) throws -> Result {
    if try needsOwnTransaction() { return try inTransaction { try changingInTransaction(body) } }
    return try changingInTransaction(body)
  }

  /// Whether the next change needs a transaction of its own.
  @inline(__always)
  func needsOwnTransaction() throws -> Bool {
    guard !isCallingOut else { throw CofferError.nestedTransaction }
    return mode == .autocommit
  }

  /// The part of `changing` that runs inside a transaction.
  ///
  /// Inlined, so that the captures of `body` are not copied: that was a third of all reference counting in a flush.
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

  /// Makes running enumerations read their remaining rows, before something changes.
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
    // There may be fewer: a rollback of the transaction drops all of them.
    transaction.undelivered.removeLast(max(0, transaction.undelivered.count - count))
  }

  /// Runs `body`, which changes several items: all of them, or none.
  func changingTogether<Result>(_ body: () throws -> Result) throws -> Result {
    guard mode != .autocommit else { return try inTransaction { try changing(body) } }
    return try savepoint { try changing(body) }
  }

  /// Runs `body` in a savepoint; an error undoes its changes.
  package func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    guard !isCallingOut, mode == .writing else { throw CofferError.nestedTransaction }
    let (changes, names) = (transaction.changes, transaction.changedNames)
    let (changesDeclarations, actions) = (transaction.changesDeclarations, transaction.actions)
    let changedNames = transaction.changedNamesOfSettings
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
      (transaction.changesDeclarations, transaction.actions) = (changesDeclarations, actions)
      transaction.changedNamesOfSettings = changedNames
      forgetUndelivered(after: undeliveredCount)
      // Collections created inside have no ID any more; items have other values.
      knownCollections.removeAll()
      cache.removeAll()
      connection.forgetTableVersion()
      do {
        if connection.isInTransaction {
          try connection.statement("ROLLBACK TO s").run()
          try connection.statement("RELEASE s").run()
        }
      } catch {
        // If it cannot be undone in part, the whole transaction is; the first error is the one to report.
        try? connection.rollback()
      }
      throw error
    }
  }

  /// Notifies observers of changes that can no longer be undone separately.
  private func deliver() {
    guard transaction.undoDepth == 0, !transaction.undelivered.isEmpty, let observation = transaction.observation else {
      return
    }
    let changes = transaction.undelivered
    transaction.undelivered = []
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

  /// SQLite ends a transaction by itself on some errors; later statements would read other snapshots, and commit one by one.
  func requireTransaction() throws {
    guard connection.isInTransaction else {
      throw StorageError.sqlite(code: 4, message: "the transaction was rolled back after an earlier error")
    }
  }
}
