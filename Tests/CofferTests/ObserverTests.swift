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

/// Holds what a test made, to its end.
final class Kept: Sendable {
  private let objects = Lock<[any AnyObject & Sendable]>([])

  func hold(_ object: any AnyObject & Sendable) {
    objects.withLock { $0.append(object) }
  }
}

@Suite("Transaction observers") struct ObserverTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private let other: Connection
  private let journal = Journal()
  private let kept = Kept()

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    other = try database.makeConnection()
  }

  /// Adds an observer, and holds it until the end of the test.
  @discardableResult
  private func observe(
    _ name: String = "a", _ extent: TransactionObservationExtent = .observerLifetime,
    _ configure: (inout TestObserver.Actions) -> Void = { _ in }
  ) -> TestObserver {
    let observer = TestObserver(name, journal, configure)
    database.add(transactionObserver: observer, extent: extent)
    kept.hold(observer)
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
    observe("a") { $0.didChange = { _ in #expect(currentThread() == writer) } }
    observe("b") { $0.observes = { $0.operation == .removal || $0.collection == "c" } }
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

  @Test("5.1 can prevent a commit: later ones are not asked, all hear of the rollback, the error surfaces")
  func veto() throws {
    try connection.readWrite { try $0.setObject("kept", forKey: "k") }
    let snapshot = try connection.read { try $0.snapshot() }
    for name in ["a", "b", "c"] { observe(name) { if name == "b" { $0.willCommit = { throw Refusal() } } } }
    #expect(throws: Refusal.self) { try connection.readWrite { try $0.setObject("lost", forKey: "k") } }
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
    observe()
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
    #expect(journal.takeWithoutValues() == ["a did insertion k", "a didRollback"])
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
  }

  @Test(
    "5.2 hear of a rollback once when the disk is full, in the middle or at the commit", arguments: [4_000_000, 10])
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
    let untilCommit = byteCount > 10 ? [] : ["a did insertion large", "a willCommit"]
    #expect(journal.takeWithoutValues() == ["a did update k"] + untilCommit + ["a didRollback"])
    recorder.failWrites { _, _ in nil }
    #expect(try connection.read { try $0.object(forKey: "k") } == "kept")
    try connection.readWrite { try $0.setObject(2, forKey: "k") }
    #expect(journal.takeWithoutValues() == ["a did update k", "a willCommit", "a didCommit"])
  }

  // MARK: 5.3, 5.4

  @Test("5.3 hear of a savepoint's changes when the outermost is released, and never of those rolled back")
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

  @Test("5.3 hear nothing more of a transaction that was rolled back but its end")
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
    #expect(journal.takeWithoutValues() == ["a did insertion before", "a didRollback"])
  }

  @Test(
    "5.4 do not hear of what an operation changed that failed, and whose error was caught", arguments: [true, false])
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
    try other.poison("DELETE")
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
      #expect(journal.takeWithoutValues() == ["a did insertion k", "a did removal a", "a willCommit", "a didCommit"])
    } else {
      try connection.writeWithoutTransaction(fail)
      #expect(
        journal.takeWithoutValues() == [
          "a did insertion k", "a willCommit", "a didCommit", "a did removal a", "a willCommit", "a didCommit",
        ])
    }
    #expect(try connection.read { try $0.allKeys() } == ["b", "k", "poison"])
  }

  // MARK: 5.5, 1.15

  /// Does something once.
  private final class Once: Sendable {
    private let isDone = Lock(false)

    func callAsFunction(_ body: () throws -> Void) {
      let isFirst = isDone.withLock { isDone in
        defer { isDone = true }
        return !isDone
      }
      guard isFirst else { return }
      do { try body() } catch { Issue.record(error) }
    }
  }

  @Test("5.5 may write when a commit is told, on any connection, after all have heard of it", arguments: [true, false])
  func writeInDidCommit(_ isSameConnection: Bool) throws {
    let (once, target) = (Once(), isSameConnection ? connection : other)
    observe("a") { actions in
      actions.didCommit = { [journal] connection in
        once {
          #expect(try connection.read { try $0.allKeys() } == ["first"])
          try target.readWrite { transaction in
            journal.note("second begins")
            try transaction.setObject(2, forKey: "second")
          }
          journal.note("second ends")
          try target.readWrite { try $0.setObject(3, forKey: "third") }
          #expect(try connection.read { try $0.numberOfKeys() } == 3)
        }
      }
    }
    observe("b") { $0.observes = { _ in false } }
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "first")
      transaction.addCompletion { [journal] in journal.note("first is complete: \($0)") }
    }
    #expect(
      journal.takeWithoutValues() == [
        "a did insertion first", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
        "first is complete: true",
        "second begins", "a did insertion second", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
        "second ends", "a did insertion third", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
      ])
    #expect(try connection.read { try $0.allKeys() } == ["first", "second", "third"])
  }

  @Test("5.5 may write in each other's commits, each write after all have heard of the one before it")
  func writesInsideWrites() throws {
    let (onceA, onceB, onceC) = (Once(), Once(), Once())
    observe("a") { [other] actions in
      actions.didCommit = { _ in onceA { try other.readWrite { try $0.setObject(1, forKey: "a") } } }
    }
    observe("b") { actions in
      actions.didCommit = { connection in
        onceB { try connection.readWrite { try $0.setObject(1, forKey: "b") } }
        onceC { try connection.unsafeReentrantWrite { try $0.setObject(1, forKey: "c") } }
      }
    }
    try connection.readWrite { try $0.setObject(0, forKey: "k") }
    #expect(
      journal.takeWithoutValues().filter { !$0.hasSuffix("willCommit") } == [
        "a did insertion k", "b did insertion k", "a didCommit", "b didCommit",
        // The write of b comes from inside of the delivery to all of them, before the write of a can begin.
        "a did insertion b", "b did insertion b", "a didCommit", "b didCommit",
        "a did insertion c", "b did insertion c", "a didCommit", "b didCommit",
        "a did insertion a", "b did insertion a", "a didCommit", "b didCommit",
      ])
    #expect(try connection.read { try $0.allKeys() } == ["a", "b", "c", "k"])
  }

  @Test("5.5 may write after a rollback, which does not bring anything of it back")
  func writeInDidRollback() throws {
    let once = Once()
    observe { actions in
      actions.didRollback = { connection in once { try connection.readWrite { try $0.setObject(1, forKey: "after") } } }
    }
    #expect(throws: Refusal.self) {
      try connection.readWrite { transaction in
        try transaction.setObject(1, forKey: "lost")
        throw Refusal()
      }
    }
    #expect(
      journal.takeWithoutValues() == [
        "a did insertion lost", "a didRollback", "a did insertion after", "a willCommit", "a didCommit",
      ])
    #expect(try connection.read { try $0.allKeys() } == ["after"])
  }

  @Test("5.5 may write in the commit of an asynchronous write, before its completion")
  func writeInAsynchronousCommit() async throws {
    let once = Once()
    observe { actions in
      actions.didCommit = { connection in once { try connection.readWrite { try $0.setObject(2, forKey: "second") } } }
    }
    try await connection.write { try $0.setObject(1, forKey: "first") }
    let keys = try await connection.read { try $0.allKeys() }
    #expect(keys == ["first", "second"])
  }

  @Test("5.5 may use another connection whose own thread waits for the write that is told to end")
  func borrowWaitingConnection() throws {
    let (once, isDone) = (Once(), DispatchSemaphore(value: 0))
    observe { actions in
      actions.didCommit = { [other] _ in
        once {
          other.asyncWrite({ try $0.setObject(3, forKey: "third") }, completion: { _ in isDone.signal() })
          while !other.lending.isParked { sched_yield() }
          #expect(try other.read { try $0.allKeys() } == ["first"])
          try other.readWrite { try $0.setObject(2, forKey: "second") }
          #expect(try other.read { try $0.allKeys() } == ["first", "second"])
        }
      }
    }
    try connection.readWrite { try $0.setObject(1, forKey: "first") }
    isDone.wait()
    #expect(try other.read { try $0.allKeys() } == ["first", "second", "third"])
  }

  @Test("5.5 may use another connection that is about to write, whatever it does meanwhile")
  func borrowBusyConnection() throws {
    let mayGoOn = DispatchSemaphore(value: 0)
    let isDone = DispatchSemaphore(value: 0)
    observe { actions in
      actions.didCommit = { [connection, other] committed in
        guard committed.id == connection.id else { return }
        mayGoOn.signal()
        do {
          try other.readWrite { transaction in
            let count: Int? = try transaction.object(forKey: "count")
            try transaction.setObject((count ?? 0) + 1, forKey: "count")
          }
        } catch {
          Issue.record(error)
        }
      }
    }
    for round in 1...50 {
      other.asyncWriteWithoutTransaction { transaction in
        mayGoOn.wait()
        try transaction.setObject(round, forKey: "other")
        isDone.signal()
      } onError: {
        Issue.record($0)
      }
      try connection.readWrite { try $0.setObject(round, forKey: "k") }
      isDone.wait()
    }
    #expect(try other.read { try $0.object(forKey: "count") } == 50)
  }

  @Test("5.5 may flush a proxy, and set through it, and it does not write its batch a second time")
  func proxyInDidCommit() throws {
    let proxy = try ConnectionProxy(database: database)
    let once = Once()
    observe { actions in
      actions.didCommit = { [other] _ in
        once {
          try other.readWrite { try $0.setObject("newer", forKey: "k") }
          #expect(try proxy.object(forKey: "k") == "newer")
          try proxy.readWriteConnection.readWrite { try $0.setObject(1, forKey: "other") }
          try proxy.flushAndWait()
          #expect(try proxy.object(forKey: "k") == "newer")
          try proxy.setObject("newest", forKey: "k", durability: .committed)
          #expect(proxy.pendingChangeCount == 0)
        }
      }
    }
    try proxy.setObject("old", forKey: "k", durability: .committed)
    #expect(try connection.read { try $0.object(forKey: "k") } == "newest")
    #expect(try proxy.object(forKey: "k") == "newest")
  }

  @Test("1.15 may not write before the commit is told, on any connection, nor through a proxy")
  func writeTooEarly() throws {
    let (proxy, ownProxy) = (
      try ConnectionProxy(database: database),
      ConnectionProxy(database: database, readOnlyConnection: other, readWriteConnection: connection)
    )
    let moments = Lock<[String]>([])
    let tryToWrite: @Sendable (String) -> Void = { [connection, other] moment in
      moments.withLock { $0.append(moment) }
      for target in [connection, other] {
        #expect(throws: CofferError.nestedTransaction) { try target.readWrite { try $0.setObject(1, forKey: "x") } }
        #expect(throws: CofferError.nestedTransaction) {
          try target.unsafeReentrantWrite { try $0.setObject(1, forKey: "x") }
        }
        #expect(throws: CofferError.nestedTransaction) {
          try target.writeWithoutTransaction { try $0.setObject(1, forKey: "x") }
        }
        #expect(throws: CofferError.nestedTransaction) { try target.erase() }
        #expect(throws: CofferError.nestedTransaction) { try target.vacuum() }
      }
      #expect(throws: CofferError.nestedTransaction) { try connection.concurrentRead { _ in }.wait() }
      for proxy in [proxy, ownProxy] {
        #expect(throws: CofferError.nestedTransaction) { try proxy.flushAndWait() }
        #expect(throws: CofferError.nestedTransaction) {
          try proxy.setObject(1, forKey: "x", durability: .committed)
        }
        #expect(proxy.pendingChangeCount == 0)
      }
      #expect(try! other.read { try $0.numberOfKeys() } == 0)
    }
    observe { actions in
      actions.observes = { _ in
        tryToWrite("observes")
        return true
      }
      actions.willChange = { tryToWrite("willChange") }
      actions.didChange = { _ in tryToWrite("didChange") }
      actions.willCommit = { tryToWrite("willCommit") }
    }
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      tryToWrite("sanitizer")
      return value
    }
    rules.objectPostSanitizer = { _, _, _ in tryToWrite("post-sanitizer") }
    database.setRules(rules, forCollection: "c")
    try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "c") }
    #expect(Set(moments.withLock { $0 }).count == 6)
    #expect(try connection.read { try $0.numberOfKeysInAllCollections() } == 1)
  }

  @Test("1.15 may not write in a sanitizer that a proxy calls")
  func writeInSanitizerOfProxy() throws {
    let proxy = try ConnectionProxy(database: database)
    let isDone = Lock(false)
    var rules = CollectionRules()
    rules.objectSanitizer = { [connection] _, _, value in
      #expect(throws: CofferError.nestedTransaction) { try connection.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try connection.writeWithoutTransaction { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try connection.unsafeReentrantWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try connection.vacuum() }
      #expect(throws: CofferError.nestedTransaction) { try proxy.setObject(1, forKey: "x", durability: .committed) }
      #expect(throws: CofferError.nestedTransaction) { try proxy.flushAndWait() }
      isDone.withLock { $0 = true }
      return value
    }
    database.setRules(rules, forCollection: "c")
    try proxy.setObject(1, forKey: "k", inCollection: "c", durability: .committed)
    #expect(isDone.withLock { $0 })
    try connection.readWrite { transaction in
      try proxy.setObject(2, forKey: "k", inCollection: "c")
      try transaction.setObject(1, forKey: "x")
    }
    try proxy.flushAndWait()
    #expect(try connection.read { try $0.object(forKey: "k", inCollection: "c") } == 2)
  }

  // MARK: 5.6, 5.7, 5.8

  @Test("5.6 may stop hearing of changes to the end of the transaction, and hear of that all the same")
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
            "a did insertion k", "b did insertion k", "b did insertion l", "b did removal k", "b did removal l",
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
        "a did insertion k", "b did insertion k", "b did insertion l", "a didRollback", "b didRollback",
      ])
  }

  #if compiler(>=6.2)
    @Test("5.6 trap when they stop outside of a change")
    func stopObservingOutside() async {
      await #expect(processExitsWith: .failure) {
        TestObserver("a", Journal()).stopObservingDatabaseChangesUntilNextTransaction()
      }
    }
  #endif

  @Test("5.7 are told as long as they live, for one transaction, or as long as the database lives")
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

  @Test("5.7 that want one transaction hear of one that is rolled back, and not of the writes made when it is told")
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

  @Test("5.7 hear a transaction to its end that is under way when they are removed, and none from the middle")
  func removal() throws {
    let a = observe("a", .databaseLifetime)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      database.remove(transactionObserver: a)
      observe("b")
      try transaction.setObject(1, forKey: "l")
    }
    #expect(
      journal.takeWithoutValues() == ["a did insertion k", "a did insertion l", "a willCommit", "a didCommit"])
    try connection.readWrite { _ in }
    #expect(journal.take() == ["b willCommit", "b didCommit"])
  }

  @Test("5.7 may come and go, and remove each other as they go, while others write")
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

  @Test("5.7 hear of each key of a collection that is cleared, with its values, and of all collections")
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
    #expect(heard.prefix(2) == ["a will 1000: 0 -, m -", "a did removal 1000"])
    #expect(heard.suffix(4) == ["a will 2199: 1199 -, m -", "a did removal 2199", "a willCommit", "a didCommit"])
    #expect(heard.count == 2402)
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "k", inCollection: "c")
      _ = journal.take()
      try transaction.removeAllObjectsInAllCollections()
    }
    #expect(
      journal.take() == [
        "a will k: 2 -", "a did removal k", "a will k: 1 -", "a did removal k", "a willCommit", "a didCommit",
      ])
  }

  @Test("5.7 cost a collection that nobody observes no reading when it is cleared")
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
    choice.withLock { $0 = { $0.operation == .insertion } }
    try connection.erase()
    #expect(try connection.read { try $0.numberOfKeysInAllCollections() } == 0)
  }

  @Test("5.8 hear of the end of an empty transaction, and nothing of a read")
  func emptyTransaction() throws {
    let snapshot = try connection.read { try $0.snapshot() }
    observe()
    try connection.readWrite { _ in }
    #expect(journal.take() == ["a willCommit", "a didCommit"])
    try connection.readWrite { transaction in
      _ = try transaction.allKeys()
      try transaction.removeObject(forKey: "none")
      try transaction.removeAllObjectsInAllCollections()
    }
    #expect(journal.take() == ["a willCommit", "a didCommit"])
    #expect(try connection.read { try $0.snapshot() } == snapshot)
    try connection.writeWithoutTransaction { _ = try $0.allKeys() }
    try connection.beginLongLivedReadTransaction()
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
    try connection.endLongLivedReadTransaction()
    #expect(try connection.concurrentRead { try $0.numberOfKeys() }.wait() == 0)
    #expect(journal.take().isEmpty)
  }
}
