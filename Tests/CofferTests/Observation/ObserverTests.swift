import CofferCompat
import CofferCrypto
import CofferStorage
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Transaction observers") struct ObserverTests {
  let store: TemporaryStore
  let database: Database
  let connection: Connection
  let other: Connection
  let journal = Journal()
  let kept = Kept()

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    other = try database.makeConnection()
  }

  /// Adds an observer, and holds it until the end of the test.
  @discardableResult
  func observe(
    _ name: String = "a", _ extent: TransactionObservationExtent = .observerLifetime,
    _ configure: (inout TestObserver.Actions) -> Void = { _ in }
  ) -> TestObserver {
    let observer = TestObserver(name, journal, configure)
    database.add(transactionObserver: observer, extent: extent)
    kept.hold(observer)
    return observer
  }

  // MARK: 5.1, 5.2

  @Test("5.1 are notified of what they asked for, in order of registration, with old and new values")
  func order() throws {
    try connection.readWrite { transaction in
      try transaction.setObject("old", forKey: "k", withMetadata: "m")
      try transaction.setObject(1, forKey: "gone")
    }
    let writer = currentThread()
    observe("a") { $0.didChange = { _ in #expect(currentThread() == writer) } }
    observe("b") { $0.observes = { $0.change == .removed || $0.collection == "c" } }
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
          "a will k: old new, m -", "a updated k",
          "a will k: - 1, - n", "b will k: - 1, - n", "a inserted k", "b inserted k",
          "a will gone: 1 -", "b will gone: 1 -", "a removed gone", "b removed gone",
          "a will k: 1 2, n n", "b will k: 1 2, n n", "a updated k", "b updated k",
          "a will k: 2 2, n o", "b will k: 2 2, n o", "a updated k", "b updated k",
          "a will k: new new", "a touched k",
        ])
    }
    #expect(journal.take() == ["a willCommit", "b willCommit", "a didCommit", "b didCommit"])
  }

  @Test(
    "5.1 can prevent a commit: later ones are not called, all are notified of the rollback, and the error is thrown")
  func veto() throws {
    try connection.readWrite { try $0.setObject("kept", forKey: "k") }
    let snapshot = try connection.read { try $0.commitNumber() }
    for name in ["a", "b", "c"] { observe(name) { if name == "b" { $0.willCommit = { throw Refusal() } } } }
    #expect(throws: Refusal.self) { try connection.readWrite { try $0.setObject("lost", forKey: "k") } }
    #expect(
      journal.takeWithoutValues().suffix(5) == [
        "a willCommit", "b willCommit", "a didRollback", "b didRollback", "c didRollback",
      ])
    #expect(try connection.read { try $0.object(forKey: "k") } == "kept")
    #expect(try connection.read { try $0.commitNumber() } == snapshot)
  }

  /// Admits as many seats as there are, whenever they were taken.
  private final class Seats: TransactionObserver {
    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }

    func databaseWillCommit(_ transaction: borrowing ReadTransaction) throws {
      if try transaction.numberOfKeys(inCollection: "seats") > 2 { throw Refusal() }
    }
  }

  @Test("5.1 can read the transaction when it is about to be committed")
  func readsTransaction() throws {
    let seats = Seats()
    database.add(transactionObserver: seats)
    func take(_ seat: String) throws {
      try connection.readWrite { try $0.setObject("x", forKey: seat, inCollection: "seats") }
    }
    try take("a")
    try take("b")
    #expect(throws: Refusal.self) { try take("c") }
    try take("b")
    try connection.readWrite { transaction in
      try transaction.removeObject(forKey: "a", inCollection: "seats")
      try transaction.setObject("x", forKey: "c", inCollection: "seats")
    }
    #expect(try connection.read { try $0.allKeys(inCollection: "seats") } == ["b", "c"])
  }

  @Test("5.2 are notified of a rollback once, whether requested, caused by an error, or SQLite's own", arguments: 0..<4)
  func rollback(_ way: Int) throws {
    try other.poison("INSERT", "ROLLBACK", for: connection)
    observe()
    let result = Result {
      try connection.readWrite { transaction in
        try transaction.setObject(1, forKey: "k")
        switch way {
        case 0: transaction.rollback()
        case 1: throw Refusal()
        case 2: try transaction.setObject(2, forKey: "poison")
        default:
          // A caller that continues regardless gets the error at the latest from the commit.
          try? transaction.setObject(2, forKey: "poison")
          try? transaction.setObject(3, forKey: "later")
        }
      }
    }
    #expect((try? result.get()) != nil || way > 0)
    #expect(journal.takeWithoutValues() == ["a inserted k", "a didRollback"])
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
  }

  @Test(
    "5.2 are notified of a rollback once if the disk is full, in the middle or at the commit",
    arguments: [4_000_000, 10])
  func diskFull(_ byteCount: Int) throws {
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer on \(recorder.name)", below: recorder.name)
    let store = try TemporaryStore()
    let database = try Database.create(at: store.path, key: store.key, options: .init(), vfs: vfs)
    let connection = try database.makeConnection()
    let observer = TestObserver("a", journal)
    kept.hold(observer)
    database.add(transactionObserver: observer)
    try connection.readWrite { try $0.setObject("kept", forKey: "k") }
    _ = journal.take()
    // SQLITE_FULL, https://www.sqlite.org/rescode.html
    recorder.failWrites { path, _ in path.hasSuffix("-wal") ? 13 : nil }
    #expect(throws: CofferError.diskFull(path: store.path)) {
      try connection.readWrite { transaction in
        try transaction.setObject(1, forKey: "k")
        // More than SQLite's cache holds goes to the log before the commit.
        try transaction.setObject(Data(count: byteCount), forKey: "large")
      }
    }
    let untilCommit = byteCount > 10 ? [] : ["a inserted large", "a willCommit"]
    #expect(journal.takeWithoutValues() == ["a updated k"] + untilCommit + ["a didRollback"])
    recorder.failWrites { _, _ in nil }
    #expect(try connection.read { try $0.object(forKey: "k") } == "kept")
    try connection.readWrite { try $0.setObject(2, forKey: "k") }
    #expect(journal.takeWithoutValues() == ["a updated k", "a willCommit", "a didCommit"])
  }

  // MARK: 5.3, 5.4

  @Test("5.3 are notified of a savepoint's changes when the outermost is released, and never of those rolled back")
  func savepoints() throws {
    observe()
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
      #expect(journal.takeWithoutValues() == ["a inserted one", "a inserted two"])
      try transaction.inSavepoint {
        try transaction.inSavepoint {
          try transaction.setObject(3, forKey: "three")
          return .commit
        }
        return .rollback
      }
      try transaction.setObject(4, forKey: "four")
    }
    #expect(journal.takeWithoutValues() == ["a inserted four", "a willCommit", "a didCommit"])
  }

  @Test("5.3 are notified only of the end of a transaction that was rolled back")
  func afterRollback() throws {
    observe()
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "before")
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "inside")
        transaction.rollback()
        try transaction.setObject(1, forKey: "after")
        return .commit
      }
      try transaction.setObject(1, forKey: "later")
      try transaction.removeAllObjects()
    }
    #expect(journal.takeWithoutValues() == ["a inserted before", "a didRollback"])
  }

  @Test(
    "5.4 are not notified of the changes of a failed operation whose error was caught", arguments: [true, false])
  func failedOperation(_ isInTransaction: Bool) throws {
    var rules = CollectionRules()
    rules.objectSanitizer = { _, key, value in
      if key == "refused" { throw Refusal() }
      return value
    }
    database.setRules(rules, forCollection: "c")
    try connection.readWrite { transaction in
      for key in ["a", "b", "poison"] { try transaction.setObject(1, forKey: key) }
    }
    try other.poison("DELETE", for: connection)
    observe()
    func fail(_ transaction: borrowing ReadWriteTransaction) throws {
      #expect(throws: CofferError.self) { try transaction.removeObjects(forKeys: ["a", "b", "poison"]) }
      #expect(throws: CofferError.self) { try transaction.removeAllObjects(inCollection: "") }
      #expect(throws: CofferError.self) { try transaction.removeAllObjectsInAllCollections() }
      #expect(throws: Refusal.self) { try transaction.setObject(1, forKey: "refused", inCollection: "c") }
      #expect(throws: CofferError.self) { try transaction.setObject(Value.null, forKey: "k") }
      #expect(throws: CofferError.self) { try transaction.removeObject(forKey: "poison") }
      #expect(journal.takeWithoutValues().allSatisfy { $0 == "a didRollback" })
      try transaction.setObject(2, forKey: "k")
      try transaction.removeObjects(forKeys: ["a", "none"])
    }
    if isInTransaction {
      try connection.readWrite(fail)
      #expect(journal.takeWithoutValues() == ["a inserted k", "a removed a", "a willCommit", "a didCommit"])
    } else {
      try connection.writeWithoutTransaction(fail)
      #expect(
        journal.takeWithoutValues() == [
          "a inserted k", "a willCommit", "a didCommit", "a removed a", "a willCommit", "a didCommit",
        ])
    }
    #expect(try connection.read { try $0.allKeys() } == ["b", "k", "poison"])
  }

  // MARK: 5.6, 5.7, 5.8

  @Test("5.6 may stop observing changes until the end of the transaction, and are still notified of that")
  func stopObserving() throws {
    observe("a") { actions in
      actions.didChange = { $0.stopObservingDatabaseChangesUntilNextTransaction() }
    }
    observe("b")
    for _ in 0..<2 {
      try connection.readWrite { transaction in
        try transaction.inSavepoint {
          for key in ["k", "l"] { try transaction.setObject(1, forKey: key) }
          return .commit
        }
        try transaction.removeAllObjects()
        #expect(
          journal.takeWithoutValues() == [
            "a inserted k", "b inserted k", "b inserted l", "b removed k", "b removed l",
          ])
      }
      #expect(journal.takeWithoutValues() == ["a willCommit", "b willCommit", "a didCommit", "b didCommit"])
    }
    #expect(throws: Refusal.self) {
      try connection.readWrite { transaction in
        try transaction.setObject(1, forKey: "k")
        try transaction.setObject(1, forKey: "l")
        throw Refusal()
      }
    }
    #expect(
      journal.takeWithoutValues() == [
        "a inserted k", "b inserted k", "b inserted l", "a didRollback", "b didRollback",
      ])
  }

  #if compiler(>=6.2)
    @Test("5.6 trap if they stop outside of a change")
    func stopObservingOutside() async {
      await #expect(processExitsWith: .failure) {
        TestObserver("a", Journal()).stopObservingDatabaseChangesUntilNextTransaction()
      }
    }
  #endif

  @Test("5.7 are notified while they exist, for one transaction, or while the database exists")
  func extents() throws {
    func write() throws -> [String] {
      try connection.readWrite { _ in }
      return journal.takeWithoutValues().filter { $0.hasSuffix("didCommit") }
    }
    var weak: TestObserver? = TestObserver("weak", journal) { [journal] actions in
      actions.deinitialize = { journal.note("weak is gone") }
    }
    try database.add(transactionObserver: #require(weak))
    for extent in [TransactionObservationExtent.nextTransaction, .databaseLifetime] {
      database.add(
        transactionObserver: TestObserver("\(extent)", journal) { [journal] actions in
          actions.deinitialize = { journal.note("\(extent) is gone") }
        }, extent: extent)
    }
    #expect(journal.take().isEmpty)
    try connection.readWrite { _ in }
    #expect(
      journal.take() == [
        "weak willCommit", "nextTransaction willCommit", "databaseLifetime willCommit",
        "weak didCommit", "nextTransaction didCommit", "databaseLifetime didCommit", "nextTransaction is gone",
      ])
    #expect(try write() == ["weak didCommit", "databaseLifetime didCommit"])
    weak = nil
    #expect(journal.take() == ["weak is gone"])
    #expect(try write() == ["databaseLifetime didCommit"])
  }

  @Test("5.7 of one transaction are notified of one that is rolled back, and not of the writes made in its callbacks")
  func nextTransaction() throws {
    observe("next", .nextTransaction) { actions in
      actions.didRollback = { connection in
        do { try connection.readWrite { try $0.setObject(1, forKey: "k") } } catch { Issue.record(error) }
      }
    }
    #expect(throws: Refusal.self) { try connection.readWrite { _ in throw Refusal() } }
    #expect(journal.take() == ["next didRollback"])
    #expect(try connection.read { try $0.allKeys() } == ["k"])
  }

  @Test("5.7 are notified of a running transaction to its end when removed, and of none from the middle")
  func removal() throws {
    let a = observe("a", .databaseLifetime)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      database.remove(transactionObserver: a)
      observe("b")
      try transaction.setObject(1, forKey: "l")
    }
    #expect(
      journal.takeWithoutValues() == ["a inserted k", "a inserted l", "a willCommit", "a didCommit"])
    try connection.readWrite { _ in }
    #expect(journal.take() == ["b willCommit", "b didCommit"])
  }

  @Test("5.7 may be added and removed, also by each other, while others write")
  func lifetimes() throws {
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      do {
        let connection = try database.makeConnection()
        for _ in 0..<50 {
          let partner = TestObserver("partner", journal)
          let observer = TestObserver("observer", journal) { [database] actions in
            actions.deinitialize = { database.remove(transactionObserver: partner) }
          }
          database.add(transactionObserver: partner, extent: .databaseLifetime)
          database.add(transactionObserver: observer)
          if thread.isMultiple(of: 2) { try connection.readWrite { _ in } }
        }
      } catch {
        Issue.record(error)
      }
    }
    _ = journal.take()
    try connection.readWrite { _ in }
    #expect(journal.take().isEmpty)
  }

  @Test("5.7 are notified of each key of a cleared collection, with its values, and of all collections")
  func clearing() throws {
    try connection.readWrite { transaction in
      for number in 0..<1200 {
        try transaction.setObject(number, forKey: "\(1000 + number)", inCollection: "c", withMetadata: "m")
      }
      try transaction.setObject(1, forKey: "k", inCollection: "d")
    }
    observe()
    try connection.readWrite { try $0.removeAllObjects(inCollection: "c") }
    let heard = journal.take()
    #expect(heard.prefix(2) == ["a will 1000: 0 -, m -", "a removed 1000"])
    #expect(heard.suffix(4) == ["a will 2199: 1199 -, m -", "a removed 2199", "a willCommit", "a didCommit"])
    #expect(heard.count == 2402)
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "k", inCollection: "c")
      _ = journal.take()
      try transaction.removeAllObjectsInAllCollections()
    }
    #expect(
      journal.take() == [
        "a will k: 2 -", "a removed k", "a will k: 1 -", "a removed k", "a willCommit", "a didCommit",
      ])
  }

  @Test("5.7 cause no reads when an unobserved collection is cleared")
  func unobservedClearing() throws {
    func fill() throws {
      try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "c") }
      // A row that cannot be read.
      try other.perform { try $0.connection.execute("UPDATE items SET type = 99") }
    }
    try fill()
    let choice = Lock<@Sendable (DatabaseEventKind) -> Bool>({ _ in true })
    observe { $0.observes = { kind in choice.withLock { $0 }(kind) } }
    #expect(throws: CofferError.self) { try connection.readWrite { try $0.removeAllObjects(inCollection: "c") } }
    #expect(throws: CofferError.self) { try connection.erase() }
    choice.withLock { $0 = { $0.collection != "c" } }
    try connection.readWrite { try $0.removeAllObjects(inCollection: "c") }
    try fill()
    choice.withLock { $0 = { $0.change == .inserted } }
    try connection.erase()
    #expect(try connection.read { try $0.numberOfKeysInAllCollections() } == 0)
  }

  @Test("5.8 are notified of the end of an empty transaction, and never of a read")
  func emptyTransaction() throws {
    let snapshot = try connection.read { try $0.commitNumber() }
    observe()
    try connection.readWrite { _ in }
    #expect(journal.take() == ["a willCommit", "a didCommit"])
    try connection.readWrite { transaction in
      _ = try transaction.allKeys()
      try transaction.removeObject(forKey: "none")
      try transaction.removeAllObjectsInAllCollections()
    }
    #expect(journal.take() == ["a willCommit", "a didCommit"])
    #expect(try connection.read { try $0.commitNumber() } == snapshot)
    try connection.writeWithoutTransaction { _ = try $0.allKeys() }
    try connection.beginLongLivedReadTransaction()
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
    try connection.endLongLivedReadTransaction()
    #expect(try connection.concurrentRead { try $0.numberOfKeys() }.wait() == 0)
    #expect(journal.take().isEmpty)
  }
}
