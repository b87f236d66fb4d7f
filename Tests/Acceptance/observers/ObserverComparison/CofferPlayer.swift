import Coffer
import CofferCompat
import Foundation
import Synchronization

/// Coffer, on a store.
enum CofferPlayer: Player {
  static func play(_ script: Script, in folder: String) throws -> [String] {
    try KeyFile.create(at: "\(folder)/key")
    let database = try Database.create(at: "\(folder)/settings.coffer", key: .keyFile("\(folder)/key"))
    let connection = try database.makeConnection()
    let stage = Stage(database: database)
    for description in script.observers { stage.add(description) }
    for transaction in script.transactions {
      do {
        try stage.play(transaction, on: connection)
      } catch  where error is Refusal || error is CofferError {
        stage.journal.note("the transaction failed")
      }
    }
    return stage.journal.lines
  }

  /// The observers of a script and what they were notified of; used by one thread at a time.
  private final class Stage {
    let journal = Journal()
    private let database: Coffer.Database
    private var observers: [String: Observer] = [:]

    init(database: Coffer.Database) {
      self.database = database
    }

    func add(_ description: ObserverDescription) {
      let observer = Observer(description, journal)
      observers[description.name] = observer
      database.add(transactionObserver: observer, extent: description.extent.inCoffer)
    }

    func play(_ transaction: Transaction, on connection: Connection) throws {
      switch transaction {
      case .commit(let steps): try connection.readWrite { try play(steps, on: $0) }
      case .rollback(let steps):
        try connection.readWrite { transaction in
          try play(steps, on: transaction)
          transaction.rollback()
        }
      case .failure(let steps):
        try connection.readWrite { transaction in
          try play(steps, on: transaction)
          throw Refusal()
        }
      case .separate(let steps): try connection.writeWithoutTransaction { try play(steps, on: $0) }
      case .read: _ = try connection.read { try $0.numberOfKeysInAllCollections() }
      }
    }

    private func play(_ steps: [Step], on transaction: borrowing ReadWriteTransaction) throws {
      for step in steps { try play(step, on: transaction) }
    }

    private func play(_ step: Step, on transaction: borrowing ReadWriteTransaction) throws {
      switch step {
      case .set(let key, let value): try transaction.setObject(value, forKey: "\(key)")
      case .remove(let key): try transaction.removeObject(forKey: "\(key)")
      case .removeAll: try transaction.removeAllObjects()
      case .failAfterSetting(let keys):
        // The last item cannot be encoded.
        let items = keys.map { Item(identifier: "\($0)", isWritable: true) }
        do {
          try transaction.write(items + [Item(identifier: "1000", isWritable: false)])
        } catch is CofferError {}
      case .fillDisk(let key):
        try? withFullDisk { try transaction.setObject(Data(count: 16_000_000), forKey: "\(key)") }
      case .savepoint(let steps, let isKept):
        try transaction.inSavepoint {
          try play(steps, on: transaction)
          return isKept ? .commit : .rollback
        }
      case .addObserver(let description): add(description)
      case .removeObserver(let name):
        if let observer = observers[name] { database.remove(transactionObserver: observer) }
      }
    }
  }

  /// An item that may refuse to be written.
  private struct Item: Persistable {
    static let collection = ""
    let identifier: String
    let isWritable: Bool

    func encode(to encoder: any Encoder) throws {
      guard isWritable else { throw Refusal() }
      var container = encoder.singleValueContainer()
      try container.encode(1)
    }
  }

  private final class Observer: Coffer.TransactionObserver {
    private let description: ObserverDescription
    private let journal: Journal
    private let hasWritten = Atomic<Bool>(false)

    init(_ description: ObserverDescription, _ journal: Journal) {
      self.description = description
      self.journal = journal
    }

    private func note(_ line: String) { journal.note("\(description.name) \(line)") }

    func observes(eventsOfKind kind: Coffer.DatabaseEventKind) -> Bool {
      guard case .insertionsOnly = description.action else { return true }
      return kind.change == .inserted
    }

    func databaseDidChange(with event: Coffer.DatabaseEvent) {
      note("\(event.kind.change) \(event.key)")
      if case .stop = description.action { stopObservingDatabaseChangesUntilNextTransaction() }
    }

    func databaseWillCommit() throws {
      note("willCommit")
      if case .veto = description.action { throw Refusal() }
    }

    func databaseDidCommit(_ connection: Connection) {
      note("didCommit")
      guard case .writeAfterCommit(let key) = description.action,
        !hasWritten.exchange(true, ordering: .relaxed)
      else { return }
      do {
        try connection.readWrite { try $0.setObject(1, forKey: "\(key)") }
      } catch {
        note("could not write: \(error)")
      }
    }

    func databaseDidRollback(_ connection: Connection) { note("didRollback") }
  }
}

extension ObserverDescription.Extent {
  fileprivate var inCoffer: Coffer.TransactionObservationExtent {
    switch self {
    case .observer: .observerLifetime
    case .nextTransaction: .nextTransaction
    case .database: .databaseLifetime
    }
  }
}
