/// Observes changes while their transaction is under way, and its end.
///
/// For each transaction, in the order in which observers were added, on the thread that writes:
///
/// 1. for each change that ``observes(eventsOfKind:)`` selects: `databaseWillChange(with:)`, and when all have heard it,
///    `databaseDidChange(with:)`. Changes inside a savepoint come when the outermost one is released; what a savepoint or
///    a failed operation has undone never comes;
/// 2. `databaseWillCommit()`, which may throw: the transaction is then rolled back, and the error reaches the writer;
/// 3. `databaseDidCommit(_:)`, or after whatever went wrong `databaseDidRollback(_:)`: exactly one of them.
///
/// A write from inside the first three throws ``CofferError/nestedTransaction``; from the last two it is allowed, and
/// starts after every observer has heard of the first transaction's end.
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
/// All but the first callback may be left out. One that has the name of a callback and another signature is an error, since it
/// would never be called. <doc:ObservingTransactions> shows an observer that keeps something.
public protocol TransactionObserver: AnyObject, Sendable, _ObserverCallbacks {
  /// Whether to report changes of this kind.
  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool
  /// A change is being made; its values before and after.
  func databaseWillChange(with event: DatabasePreUpdateEvent)
  /// A change was made.
  func databaseDidChange(with event: DatabaseEvent)
  /// The transaction is about to be committed.
  ///
  /// - Throws: To have it rolled back.
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
  /// Does nothing.
  public func databaseWillCommit() throws {}
  /// Does nothing.
  public func databaseDidCommit(_ connection: Connection) {}
  /// Does nothing.
  public func databaseDidRollback(_ connection: Connection) {}

  /// Stops reports of this transaction's changes, not of its end.
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
  /// As long as someone else holds it; the database does not.
  case observerLifetime
  /// Until the end of the next transaction that begins; the database holds it until then.
  case nextTransaction
  /// As long as the database lives, which holds it.
  case databaseLifetime
}

extension Database {
  /// Adds an observer of the transactions that begin after the call, on all connections of this database.
  public func add(
    transactionObserver observer: any TransactionObserver, extent: TransactionObservationExtent = .observerLifetime
  ) {
    core.observers.add(observer, extent)
  }

  /// Removes an observer.
  ///
  /// It still observes a transaction that is under way, to its end.
  public func remove(transactionObserver observer: any TransactionObserver) {
    core.observers.remove(observer)
  }
}
