/// Observes the changes of transactions as they are made, and the end of each transaction.
///
/// For each transaction, in the order in which observers were added, on the thread that writes:
///
/// 1. for each change that ``observes(eventsOfKind:)`` selects: `databaseWillChange(with:)` on all observers, then
///    `databaseDidChange(with:)`. Changes inside a savepoint are reported when the outermost one is released; changes that a
///    savepoint or a failed operation has undone are never reported;
/// 2. `databaseWillCommit(_:)`, or `databaseWillCommit()`, which may throw: the transaction is then rolled back, and the writer
///    gets the error;
/// 3. either `databaseDidCommit(_:)` or, after any failure, `databaseDidRollback(_:)`.
///
/// A write inside the first three throws ``CofferError/nestedTransaction``; inside the last two it is allowed, and starts
/// after all observers have been notified of the first transaction's end.
///
/// ```swift
/// final class Audit: TransactionObserver {
///   func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { kind.collection == "accounts" }
///   func databaseDidChange(with event: DatabaseEvent) { print("\(event.key) changed") }
/// }
/// let audit = Audit()
/// database.add(transactionObserver: audit)
/// ```
///
/// All callbacks except the first are optional. A method with the name of a callback and another signature is a compile-time
/// error, since it would never be called. <doc:ObservingTransactions> shows an observer that stores something.
public protocol TransactionObserver: AnyObject, Sendable, _ObserverCallbacks {
  /// Whether to report changes of this kind.
  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool
  /// A change is about to be made; receives its values before and after.
  func databaseWillChange(with event: DatabasePreUpdateEvent)
  /// A change was made.
  func databaseDidChange(with event: DatabaseEvent)
  /// The transaction is about to be committed; everything can be read as it will be then.
  ///
  /// ```swift
  /// func databaseWillCommit(_ transaction: borrowing ReadTransaction) throws {
  ///   let count: Int = try transaction.object(forKey: "count", inCollection: "seats") ?? 0
  ///   guard count <= 4 else { throw TooMany() }
  /// }
  /// ```
  ///
  /// Unless an observer has this method, its ``databaseWillCommit()`` is called.
  ///
  /// - Throws: An error to roll it back.
  func databaseWillCommit(_ transaction: borrowing ReadTransaction) throws
  /// The transaction is about to be committed.
  ///
  /// - Throws: An error to roll it back.
  func databaseWillCommit() throws
  /// The transaction was committed, by `connection`.
  func databaseDidCommit(_ connection: Connection)
  /// The transaction of `connection` was rolled back.
  func databaseDidRollback(_ connection: Connection)
}

extension TransactionObserver {
  /// Does nothing.
  public func databaseWillChange(with event: DatabasePreUpdateEvent) {}
  /// Does nothing.
  public func databaseDidChange(with event: DatabaseEvent) {}
  /// Calls ``databaseWillCommit()``.
  public func databaseWillCommit(_ transaction: borrowing ReadTransaction) throws { try databaseWillCommit() }
  /// Does nothing.
  public func databaseWillCommit() throws {}
  /// Does nothing.
  public func databaseDidCommit(_ connection: Connection) {}
  /// Does nothing.
  public func databaseDidRollback(_ connection: Connection) {}

  /// Stops reports of this transaction's changes, but not of its end.
  ///
  /// - Precondition: Called inside `databaseDidChange(with:)`.
  public func stopObservingDatabaseChangesUntilNextTransaction() {
    guard let entry = ObserverRegistry.changing, entry.observer === self else {
      preconditionFailure("Call stopObservingDatabaseChangesUntilNextTransaction() inside databaseDidChange(with:).")
    }
    entry.isStopped.store(true, ordering: .relaxed)
  }
}

/// How long an observation lasts.
public enum TransactionObservationExtent: Sendable {
  /// As long as something else keeps the observer; the database does not.
  case observerLifetime
  /// Until the end of the next transaction that begins; the database keeps the observer until then.
  case nextTransaction
  /// As long as the database exists, which keeps the observer.
  case databaseLifetime
}

extension Database {
  /// Adds an observer of transactions that begin after the call, on all connections of this database.
  public func add(
    transactionObserver observer: any TransactionObserver, extent: TransactionObservationExtent = .observerLifetime
  ) {
    observers.add(observer, extent)
  }

  /// Removes an observer.
  ///
  /// It still observes a running transaction, to its end.
  public func remove(transactionObserver observer: any TransactionObserver) {
    observers.remove(observer)
  }
}
