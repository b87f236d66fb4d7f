import CSQLite
import CofferCrypto
import Testing

@testable import Coffer
@testable import CofferStorage

/// What several observers heard, in order.
final class Journal: Sendable {
  private let lines = Lock<[String]>([])

  func note(_ line: String) {
    lines.withLock { $0.append(line) }
  }

  /// What was noted since the last call.
  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}

/// Records its notifications, and runs given actions.
final class TestObserver: TransactionObserver {
  struct Actions: Sendable {
    var observes: @Sendable (DatabaseEventKind) -> Bool = { _ in true }
    var willChange: @Sendable () -> Void = {}
    var didChange: @Sendable (TestObserver) -> Void = { _ in }
    var willCommit: @Sendable () throws -> Void = {}
    var didCommit: @Sendable (Connection) -> Void = { _ in }
    var didRollback: @Sendable (Connection) -> Void = { _ in }
    var deinitialize: @Sendable () -> Void = {}
  }

  private let name: String
  private let journal: Journal
  private let actions: Actions

  init(_ name: String, _ journal: Journal, _ configure: (inout Actions) -> Void = { _ in }) {
    self.name = name
    self.journal = journal
    var actions = Actions()
    configure(&actions)
    self.actions = actions
  }

  deinit { actions.deinitialize() }

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { actions.observes(kind) }

  func databaseWillChange(with event: DatabasePreUpdateEvent) {
    func text(_ value: Value?) -> String {
      switch value {
      case nil: "-"
      case .string(let text): text
      case .int(let number): "\(number)"
      case let other?: "\(other)"
      }
    }
    do {
      let values = try "\(text(event.oldObject)) \(text(event.newObject))"
      let metadata = try "\(text(event.oldMetadata)) \(text(event.newMetadata))"
      journal.note("\(name) will \(event.event.key): \(values)\(metadata == "- -" ? "" : ", " + metadata)")
    } catch {
      Issue.record(error)
    }
    actions.willChange()
  }

  func databaseDidChange(with event: DatabaseEvent) {
    journal.note("\(name) \(event.kind.change) \(event.key)")
    actions.didChange(self)
  }

  func databaseWillCommit() throws {
    journal.note("\(name) willCommit")
    try actions.willCommit()
  }

  func databaseDidCommit(_ connection: Connection) {
    journal.note("\(name) didCommit")
    actions.didCommit(connection)
  }

  func databaseDidRollback(_ connection: Connection) {
    journal.note("\(name) didRollback")
    actions.didRollback(connection)
  }
}

extension Journal {
  /// The same without notifications before a change.
  func takeWithoutValues() -> [String] { take().filter { !$0.contains(" will ") } }
}

struct Refusal: Error {}

extension Connection {
  /// Lets each insertion, or removal, of the key `poison` fail the way `failure` says: `ABORT` undoes the statement,
  /// `ROLLBACK` the whole transaction, as SQLite does by itself when the disk is full.
  ///
  /// - Parameter writers: The connections for which that holds, beside this one.
  func poison(_ event: String = "INSERT", _ failure: String = "ABORT", for writers: Connection...) throws {
    for writer in writers { try writer.runTriggers() }
    try runTriggers()
    try perform { session in
      try session.connection.execute(
        """
        CREATE TRIGGER poison BEFORE \(event) ON items WHEN \(event == "INSERT" ? "new" : "old").key = 'poison'
        BEGIN SELECT raise(\(failure), 'no'); END
        """)
    }
  }
}

extension Connection {
  /// Lets this connection run triggers, which Coffer's own do not.
  func runTriggers() throws {
    try perform { session in
      #expect(coffer_db_config_int(session.connection.handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1) == SQLITE_OK)
    }
  }
}

/// Keeps the objects of a test alive until its end.
final class Kept: Sendable {
  private let objects = Lock<[any AnyObject & Sendable]>([])

  func hold(_ object: any AnyObject & Sendable) {
    objects.withLock { $0.append(object) }
  }

  var count: Int { objects.withLock { $0.count } }
}
