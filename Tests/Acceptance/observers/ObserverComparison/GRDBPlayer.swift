import Foundation
import GRDB

/// GRDB, on a plain database.
enum GRDBPlayer: Player {
  static func play(_ script: Script, in folder: String) throws -> [String] {
    let queue = try DatabaseQueue(path: "\(folder)/plain.sqlite")
    try queue.write { try $0.execute(sql: "CREATE TABLE items (key INTEGER PRIMARY KEY, value NOT NULL)") }
    let stage = Stage()
    for description in script.observers {
      queue.add(transactionObserver: stage.make(description), extent: description.extent.inGRDB)
    }
    for transaction in script.transactions {
      do {
        try stage.play(transaction, on: queue)
      } catch  where error is Refusal || error is DatabaseError {
        stage.journal.note("the transaction failed")
      }
    }
    return stage.journal.lines
  }

  /// The observers of a script and what they were notified of; used by one thread at a time.
  private final class Stage {
    let journal = Journal()
    private var observers: [String: Observer] = [:]

    func make(_ description: ObserverDescription) -> Observer {
      let observer = Observer(description, journal)
      observers[description.name] = observer
      return observer
    }

    func play(_ transaction: Transaction, on queue: DatabaseQueue) throws {
      switch transaction {
      case .commit(let steps):
        try queue.writeWithoutTransaction { database in
          try database.inTransaction {
            try play(steps, on: database)
            return .commit
          }
        }
      case .rollback(let steps):
        try queue.writeWithoutTransaction { database in
          try database.inTransaction {
            try play(steps, on: database)
            return .rollback
          }
        }
      case .failure(let steps):
        try queue.write { database in
          try play(steps, on: database)
          throw Refusal()
        }
      case .separate(let steps): try queue.writeWithoutTransaction { try play(steps, on: $0) }
      case .read: _ = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM items") }
      }
    }

    private func play(_ steps: [Step], on database: GRDB.Database) throws {
      for step in steps { try play(step, on: database) }
    }

    private func play(_ step: Step, on database: GRDB.Database) throws {
      switch step {
      case .set(let key, let value):
        try database.execute(
          sql: "INSERT INTO items VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
          arguments: [key, value])
      case .remove(let key): try database.execute(sql: "DELETE FROM items WHERE key = ?", arguments: [key])
      case .removeAll: try database.execute(sql: "DELETE FROM items")
      case .failAfterSetting(let keys):
        // The last row has no value, which the table does not take.
        let rows = keys.map { "(\($0), 1)" } + ["(1000, NULL)"]
        do {
          try database.execute(sql: "INSERT INTO items VALUES \(rows.joined(separator: ", "))")
        } catch is DatabaseError {}
      case .fillDisk(let key):
        try? withFullDisk {
          try database.execute(sql: "INSERT INTO items VALUES (?, zeroblob(16000000))", arguments: [key])
        }
      case .savepoint(let steps, let isKept):
        try database.inSavepoint {
          try play(steps, on: database)
          return isKept ? .commit : .rollback
        }
      case .addObserver(let description):
        database.add(transactionObserver: make(description), extent: description.extent.inGRDB)
      case .removeObserver(let name):
        if let observer = observers[name] { database.remove(transactionObserver: observer) }
      }
    }
  }

  private final class Observer: GRDB.TransactionObserver {
    private let description: ObserverDescription
    private let journal: Journal
    private var hasWritten = false

    init(_ description: ObserverDescription, _ journal: Journal) {
      self.description = description
      self.journal = journal
    }

    private func note(_ line: String) { journal.note("\(description.name) \(line)") }

    func observes(eventsOfKind kind: GRDB.DatabaseEventKind) -> Bool {
      guard case .insertionsOnly = description.action else { return true }
      if case .insert = kind { return true }
      return false
    }

    func databaseDidChange(with event: GRDB.DatabaseEvent) {
      let what =
        switch event.kind {
        case .insert: "inserted"
        case .update: "updated"
        case .delete: "removed"
        }
      note("\(what) \(event.rowID)")
      if case .stop = description.action { stopObservingDatabaseChangesUntilNextTransaction() }
    }

    func databaseWillCommit() throws {
      note("willCommit")
      if case .veto = description.action { throw Refusal() }
    }

    func databaseDidCommit(_ database: GRDB.Database) {
      note("didCommit")
      guard case .writeAfterCommit(let key) = description.action, !hasWritten else { return }
      hasWritten = true
      do {
        try database.inTransaction {
          try database.execute(sql: "INSERT INTO items VALUES (?, 1)", arguments: [key])
          return .commit
        }
      } catch {
        note("could not write: \(error)")
      }
    }

    func databaseDidRollback(_ database: GRDB.Database) { note("didRollback") }
  }
}

extension ObserverDescription.Extent {
  fileprivate var inGRDB: GRDB.Database.TransactionObservationExtent {
    switch self {
    case .observer: .observerLifetime
    case .nextTransaction: .nextTransaction
    case .database: .databaseLifetime
    }
  }
}
