// Callbacks that would never be called; see `ObserverCallbacks.swift`.

import Coffer

class Observer {
  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
}

final class CommitOfDatabase: Observer, TransactionObserver, @unchecked Sendable {
  // error: declare it as 'func databaseDidCommit(_ connection: Connection)'
  func databaseDidCommit(_ db: Database) {}
}

final class RollbackOfDatabase: Observer, TransactionObserver, @unchecked Sendable {
  // error: declare it as 'func databaseDidRollback(_ connection: Connection)'
  func databaseDidRollback(_ db: Database) {}
}

final class ChangeWithValues: Observer, TransactionObserver, @unchecked Sendable {
  // error: declare it as 'func databaseDidChange(with event: DatabaseEvent)'
  func databaseDidChange(with event: DatabasePreUpdateEvent) {}
}

final class ChangeToComeWithoutValues: Observer, TransactionObserver, @unchecked Sendable {
  // error: declare it as 'func databaseWillChange(with event: DatabasePreUpdateEvent)'
  func databaseWillChange(with event: DatabaseEvent) {}
}

final class ChangeWithoutEvent: Observer, TransactionObserver, @unchecked Sendable {
  // error: the callbacks are databaseDidChange(with:), databaseDidCommit(_:) and databaseDidRollback(_:)
  func databaseDidChange() {}
}

final class WithoutInterest: TransactionObserver {
  // error: type 'WithoutInterest' does not conform to protocol 'TransactionObserver'
}

final class AsTheyHaveToBe: Observer, TransactionObserver, @unchecked Sendable {
  func databaseWillChange(with event: DatabasePreUpdateEvent) {}
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseWillCommit() throws {}
  func databaseDidCommit(_ connection: Connection) {}
  func databaseDidRollback(_ connection: Connection) {}
}

final class OfTwoLibraries: Observer, TransactionObserver, @unchecked Sendable {
  typealias _DidCommit = Connection
  func databaseDidCommit(_ connection: Connection) {}
  func databaseDidCommit(_ db: Database) {}
}
