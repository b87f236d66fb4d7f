import CofferCompat
import CofferCrypto
import Dispatch
import Foundation
import Testing

@testable import Coffer

extension ObserverTests {
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

  @Test(
    "5.5 may write when notified of a commit, on any connection, after all were notified", arguments: [true, false])
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
        "a inserted first", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
        "first is complete: true",
        "second begins", "a inserted second", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
        "second ends", "a inserted third", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
      ])
    #expect(try connection.read { try $0.allKeys() } == ["first", "second", "third"])
  }

  @Test("5.5 may write in each other's commits, each write after all were notified of the one before")
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
        "a inserted k", "b inserted k", "a didCommit", "b didCommit",
        // The write of b comes from inside of the delivery to all of them, before the write of a can begin.
        "a inserted b", "b inserted b", "a didCommit", "b didCommit",
        "a inserted c", "b inserted c", "a didCommit", "b didCommit",
        "a inserted a", "b inserted a", "a didCommit", "b didCommit",
      ])
    #expect(try connection.read { try $0.allKeys() } == ["a", "b", "c", "k"])
  }

  @Test("5.5 may write after a rollback, without restoring anything of it")
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
        "a inserted lost", "a didRollback", "a inserted after", "a willCommit", "a didCommit",
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

  @Test("5.5 may use another connection whose own thread waits for the end of the reported write")
  func borrowWaitingConnection() throws {
    let (once, isDone) = (Once(), DispatchSemaphore(value: 0))
    observe { actions in
      actions.didCommit = { [other] _ in
        once {
          other.asyncWrite({ try $0.setObject(3, forKey: "third") }, completion: { _, _ in isDone.signal() })
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

  @Test("5.5 may use another connection that is about to write")
  func borrowBusyConnection() throws {
    let mayContinue = DispatchSemaphore(value: 0)
    let isDone = DispatchSemaphore(value: 0)
    observe { actions in
      actions.didCommit = { [connection, other] committed in
        guard committed.id == connection.id else { return }
        mayContinue.signal()
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
        mayContinue.wait()
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

  @Test("5.5 may flush a proxy, and set through it, without writing its batch twice")
  func proxyInDidCommit() throws {
    let proxy = try ConnectionProxy(database: database)
    let once = Once()
    observe { actions in
      actions.didCommit = { [other] _ in
        once {
          try other.readWrite { try $0.setObject("newer", forKey: "k") }
          #expect(try proxy.object(forKey: "k") == "newer")
          try proxy.writer.readWrite { try $0.setObject(1, forKey: "other") }
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

  @Test("1.15 may not write before the commit is reported, on any connection, nor through a proxy")
  func writeTooEarly() throws {
    let (proxy, ownProxy) = (
      try ConnectionProxy(database: database),
      try ConnectionProxy(database: database, reader: other, writer: connection)
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
}
