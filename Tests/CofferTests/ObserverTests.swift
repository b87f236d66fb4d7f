import CSQLite
import CofferCrypto
import CofferStorage
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

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

/// Notes what it hears, and does what it is told to.
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
    journal.note("\(name) did \(event.kind.operation) \(event.key)")
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
  /// The same without what was heard before a change.
  func takeWithoutValues() -> [String] { take().filter { !$0.contains(" will ") } }
}

struct Refusal: Error {}

extension Connection {
  /// Lets each insertion, or removal, of the key `poison` fail the way `failure` says: `ABORT` undoes the statement,
  /// `ROLLBACK` the whole transaction, as SQLite does by itself when the disk is full.
  func poison(_ event: String = "INSERT", _ failure: String = "ABORT") throws {
    try perform { session in
      try session.connection.execute(
        """
        CREATE TRIGGER poison BEFORE \(event) ON items WHEN \(event == "INSERT" ? "new" : "old").key = 'poison'
        BEGIN SELECT raise(\(failure), 'no'); END
        """)
    }
  }
}

@Suite("Transaction observers") struct ObserverTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private let other: Connection
  private let journal = Journal()

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    other = try database.makeConnection()
  }

  /// A new observer of the database, which the caller has to hold.
  private func observe(
    _ name: String = "a", _ extent: TransactionObservationExtent = .observerLifetime,
    _ configure: (inout TestObserver.Actions) -> Void = { _ in }
  ) -> TestObserver {
    let observer = TestObserver(name, journal, configure)
    database.add(transactionObserver: observer, extent: extent)
    return observer
  }

  // MARK: 5.1, 5.2

  @Test("5.1 are told of what they asked for, in order of registration, with old and new values")
  func order() throws {
    try connection.readWrite { transaction in
      try transaction.setObject("old", forKey: "k", withMetadata: "m")
      try transaction.setObject(1, forKey: "gone")
    }
    let writer = currentThread()
    let a = observe("a") { $0.didChange = { _ in #expect(currentThread() == writer) } }
    let b = observe("b") { $0.observes = { $0.operation == .removal || $0.collection == "c" } }
    try withExtendedLifetime((a, b)) {
      try connection.readWrite { transaction in
        try transaction.setObject("new", forKey: "k")
        try transaction.setObject(1, forKey: "k", inCollection: "c", withMetadata: "n")
        try transaction.removeObject(forKey: "gone")
        try transaction.replaceObject(2, forKey: "k", inCollection: "c")
        try transaction.replaceMetadata("o", forKey: "k", inCollection: "c")
        try transaction.touchRow(forKey: "k")
        // Nothing changes.
        try transaction.setObject("new", forKey: "k")
        try transaction.removeObject(forKey: "none")
        #expect(
          journal.take() == [
            "a will k: old new, m -", "a did update k",
            "a will k: - 1, - n", "b will k: - 1, - n", "a did insertion k", "b did insertion k",
            "a will gone: 1 -", "b will gone: 1 -", "a did removal gone", "b did removal gone",
            "a will k: 1 2, n n", "b will k: 1 2, n n", "a did update k", "b did update k",
            "a will k: 2 2, n o", "b will k: 2 2, n o", "a did update k", "b did update k",
            "a will k: new new", "a did touch k",
          ])
      }
      #expect(journal.take() == ["a willCommit", "b willCommit", "a didCommit", "b didCommit"])
    }
  }

  @Test("5.1 can prevent a commit: later ones are not asked, all hear of the rollback, the error surfaces")
  func veto() throws {
    try connection.readWrite { try $0.setObject("kept", forKey: "k") }
    let snapshot = try connection.read { try $0.snapshot() }
    let observers = ["a", "b", "c"].map { name in
      observe(name) { if name == "b" { $0.willCommit = { throw Refusal() } } }
    }
    withExtendedLifetime(observers) {
      #expect(throws: Refusal.self) { try connection.readWrite { try $0.setObject("lost", forKey: "k") } }
    }
    #expect(
      journal.takeWithoutValues().suffix(5) == [
        "a willCommit", "b willCommit", "a didRollback", "b didRollback", "c didRollback",
      ])
    #expect(try connection.read { try $0.object(forKey: "k") } == "kept")
    #expect(try connection.read { try $0.snapshot() } == snapshot)
  }

  @Test("5.2 hear of a rollback once, whether it was asked for, thrown, or SQLite's own", arguments: 0..<4)
  func rollback(_ way: Int) throws {
    try other.poison("INSERT", "ROLLBACK")
    let observer = observe()
    withExtendedLifetime(observer) {
      let result = Result {
        try connection.readWrite { transaction in
          try transaction.setObject(1, forKey: "k")
          switch way {
          case 0: transaction.rollback()
          case 1: throw Refusal()
          case 2: try transaction.setObject(2, forKey: "poison")
          default:
            // Whoever goes on as if nothing had happened is told at the latest by the commit.
            try? transaction.setObject(2, forKey: "poison")
            try? transaction.setObject(3, forKey: "later")
          }
        }
      }
      #expect((try? result.get()) != nil || way > 0)
    }
    #expect(journal.takeWithoutValues() == ["a did insertion k", "a didRollback"])
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
  }

  @Test("5.2 hear of a rollback once when the disk is full, in the middle or at the commit", arguments: [4_000_000, 10])
  func diskFull(_ byteCount: Int) throws {
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer on \(recorder.name)", below: recorder.name)
    let store = try TemporaryStore()
    let database = try Database.create(at: store.path, key: store.key, options: .init(), vfs: vfs)
    let connection = try database.makeConnection()
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer)
    try withExtendedLifetime(observer) {
      try connection.readWrite { try $0.setObject("kept", forKey: "k") }
      _ = journal.take()
      recorder.failWrites { path, _ in path.hasSuffix("-wal") ? SQLITE_FULL : nil }
      #expect(throws: CofferError.diskFull(path: store.path)) {
        try connection.readWrite { transaction in
          try transaction.setObject(1, forKey: "k")
          // More than SQLite's cache holds goes to the log before the commit.
          try transaction.setObject(Data(count: byteCount), forKey: "large")
        }
      }
      let heard = journal.takeWithoutValues()
      #expect(heard.first == "a did update k")
      #expect(heard.filter { $0.contains("Commit") || $0.contains("Rollback") }.last == "a didRollback")
      #expect(heard.filter { $0.hasSuffix("didRollback") || $0.hasSuffix("didCommit") }.count == 1)
      recorder.failWrites { _, _ in nil }
      #expect(try connection.read { try $0.object(forKey: "k") } == "kept")
      try connection.readWrite { try $0.setObject(2, forKey: "k") }
      #expect(journal.takeWithoutValues() == ["a did update k", "a willCommit", "a didCommit"])
    }
  }

  // MARK: 5.3, 5.4

  @Test("5.3 hear of a savepoint's changes when the outermost is released, and never of those rolled back")
  func savepoints() throws {
    let observer = observe()
    try withExtendedLifetime(observer) {
      try connection.readWrite { transaction in
        try transaction.inSavepoint {
          try transaction.setObject(1, forKey: "one")
          try transaction.inSavepoint {
            try transaction.setObject(1, forKey: "undone")
            return .rollback
          }
          try transaction.inSavepoint {
            try transaction.setObject(2, forKey: "two")
            return .commit
          }
          try? transaction.inSavepoint {
            try transaction.setObject(1, forKey: "undone")
            throw Refusal()
          }
          #expect(journal.take().isEmpty)
          return .commit
        }
        #expect(journal.takeWithoutValues() == ["a did insertion one", "a did insertion two"])
        try transaction.inSavepoint {
          try transaction.inSavepoint {
            try transaction.setObject(3, forKey: "three")
            return .commit
          }
          return .rollback
        }
        try transaction.setObject(4, forKey: "four")
      }
      #expect(journal.takeWithoutValues() == ["a did insertion four", "a willCommit", "a didCommit"])
    }
  }
}
