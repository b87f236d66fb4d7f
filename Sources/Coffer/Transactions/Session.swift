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

  /// What the call may do that uses it at present.
  @exclusivity(unchecked) var call = SessionCall()
  @exclusivity(unchecked) var transaction = TransactionState()
  /// What it knows of the store from one transaction to the next.
  @exclusivity(unchecked) var known = KnownStore()
  /// Collections that were looked up; another process may remove a collection between two transactions.
  ///
  /// Constant, and not in `known`: each change looks its collection up, without counting a reference.
  let knownCollections = KnownCollections()
  @exclusivity(unchecked) var cache = ItemCache()
  /// The snapshot of the long-lived read; nil if there is none.
  var pinned: PinnedSnapshot?
  /// Running enumerations, which see the rows as of their start.
  @exclusivity(unchecked) var cursors: [Cursor] = []
  /// Whether the last write transaction changed anything, and so made a commit.
  var hasCommitted = false
  /// Which of the successive stores at this path it belongs to.
  package let generation: Int
  /// The ID of that store, in hexadecimal; empty for one in memory.
  package var storeID: String { connection.store.map { HexText.text($0.storeID) } ?? "" }

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

  /// Whether another store has replaced this one, or it is an image that has changed, so that the next transaction has to use
  /// that.
  ///
  /// - Parameter isCertain: Whether to check always, and not only after a commit since the last check.
  func isReplaced(isCertain: Bool) -> Bool {
    pinned == nil
      && (generation != core.generation.load(ordering: .relaxed) || connection.isOfOldImage
        || connection.isReplaced(isCertain: isCertain))
  }

  /// Whether this thread, inside a call of the same connection, may begin another transaction: while the end of one is
  /// delivered, or in the completion of an asynchronous one.
  var allowsAnotherTransaction: Bool { call.mode == .idle && call.isBetweenTransactions }

  /// Runs `body`, which may begin transactions on this connection.
  func betweenTransactions(_ body: () -> Void) {
    let earlier = call.isBetweenTransactions
    call.isBetweenTransactions = true
    defer { call.isBetweenTransactions = earlier }
    body()
  }

  /// Whether there is a write transaction in which this thread may write.
  var isWriting: Bool { (call.mode == .writing || call.mode == .autocommit) && !call.isCallingOut }

  /// Whether there is a write transaction, even if it may not be written in now.
  var isInWriteTransaction: Bool { call.mode == .writing }

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
    guard call.mode == .autocommit else { return transaction.completions.append((queue, block)) }
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
    if call.mode == .autocommit { return try read(cancellation: call.autocommitCancellation) { try reading(body) } }
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
    guard !call.isCallingOut else { throw CofferError.nestedTransaction }
    return call.mode == .autocommit
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
    guard call.mode != .autocommit else { return try inTransaction { try changing(body) } }
    return try savepoint { try changing(body) }
  }

  /// Runs `body` in a savepoint; an error undoes its changes.
  package func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    guard !call.isCallingOut, call.mode == .writing else { throw CofferError.nestedTransaction }
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
    let earlier = call.isCallingOut
    call.isCallingOut = true
    defer { call.isCallingOut = earlier }
    return try body()
  }

  func checkCancellation() throws {
    try transaction.cancellation?.check()
  }

  /// SQLite ends a transaction by itself on some errors; later statements would read other snapshots, and commit one by one.
  func requireTransaction() throws {
    guard connection.isInTransaction else {
      throw StorageError.sqlite(code: 4, message: "the transaction was rolled back after an earlier error")
    }
  }
}
