import CofferCrypto
import Synchronization

/// The transaction observers of a database.
final class ObserverRegistry: Sendable {
  /// One registered observer.
  final class Entry: Sendable {
    private let weak: WeakObserver
    /// Keeps the observer, if its extent requires that.
    private let strong: (any TransactionObserver)?
    let extent: TransactionObservationExtent
    /// Whether it wants no more changes of the current transaction.
    let isStopped = Atomic<Bool>(false)

    init(_ observer: any TransactionObserver, _ extent: TransactionObservationExtent) {
      weak = WeakObserver(observer)
      strong = extent == .observerLifetime ? nil : observer
      self.extent = extent
    }

    var observer: (any TransactionObserver)? { weak.observer }
  }

  /// Unchecked: a weak reference is read and cleared atomically, and never assigned again.
  private struct WeakObserver: @unchecked Sendable {
    weak var observer: (any TransactionObserver)?

    init(_ observer: any TransactionObserver) {
      self.observer = observer
    }
  }

  /// The observer whose `databaseDidChange` the calling thread is in.
  @TaskLocal static var changing: Entry?

  private let entries = Lock<[Entry]>([])
  private let isEmpty = Atomic<Bool>(true)

  func add(_ observer: any TransactionObserver, _ extent: TransactionObservationExtent) {
    entries.withLock { $0.append(Entry(observer, extent)) }
    isEmpty.store(false, ordering: .releasing)
  }

  func remove(_ observer: any TransactionObserver) {
    remove(entries.withLock { $0 }.filter { $0.observer === observer })
  }

  /// Removes these entries.
  ///
  /// No observer is accessed under the lock: that may release the last reference to it, and its `deinit` may call this.
  private func remove(_ unwanted: [Entry]) {
    guard !unwanted.isEmpty else { return }
    entries.withLock { entries in
      entries.removeAll { entry in unwanted.contains { $0 === entry } }
      isEmpty.store(entries.isEmpty, ordering: .releasing)
    }
  }

  /// The observers of a transaction of `connection` that begins now, in the order in which they were added; nil if there are
  /// none.
  func begin(_ connection: Connection) -> (any TransactionObservation)? {
    guard !isEmpty.load(ordering: .acquiring) else { return nil }
    let all = entries.withLock { $0 }
    remove(all.filter { $0.observer == nil })
    let present = all.filter { $0.observer != nil }
    return present.isEmpty ? nil : Observation(registry: self, connection: connection, entries: present)
  }

  /// Removes the observers that wanted to see only this transaction.
  fileprivate func end(_ observed: [Entry]) {
    for entry in observed { entry.isStopped.store(false, ordering: .relaxed) }
    guard observed.contains(where: { $0.extent == .nextTransaction }) else { return }
    remove(observed.filter { $0.extent == .nextTransaction })
  }
}

/// The observers of one transaction.
private struct Observation: TransactionObservation {
  let registry: ObserverRegistry
  let connection: Connection
  let entries: [ObserverRegistry.Entry]

  func observes(_ kind: DatabaseEventKind) -> Bool {
    entries.contains { !$0.isStopped.load(ordering: .relaxed) && $0.observer?.observes(eventsOfKind: kind) ?? false }
  }

  func deliver(_ change: ObservedChange, _ core: DatabaseCore) {
    let interested = entries.filter { entry in
      !entry.isStopped.load(ordering: .relaxed) && entry.observer?.observes(eventsOfKind: change.event.kind) ?? false
    }
    let event = DatabasePreUpdateEvent(event: change.event, old: change.old, new: change.new, core: core)
    for entry in interested { entry.observer?.databaseWillChange(with: event) }
    for entry in interested {
      ObserverRegistry.$changing.withValue(entry) { entry.observer?.databaseDidChange(with: change.event) }
    }
  }

  func willCommit(_ session: Session) throws {
    let transaction = ReadTransaction(context: TransactionContext(session: session))
    for entry in entries { try entry.observer?.databaseWillCommit(transaction) }
  }

  func end(isCommitted: Bool) -> [@Sendable () -> Void] {
    registry.end(entries)
    let connection = connection
    return entries.map { entry in
      {
        guard let observer = entry.observer else { return }
        if isCommitted { observer.databaseDidCommit(connection) } else { observer.databaseDidRollback(connection) }
      }
    }
  }
}
