import CofferCrypto
import CofferStorage
import Dispatch
import Foundation
import Testing

@testable import Coffer

@Suite("Writers") struct WriterTests {
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

  private func keys() throws -> [String] {
    try other.read { try $0.allKeys() }
  }

  // MARK: 1.11, 1.13

  @Test("1.13 find a write inside a write on any connection, and a read inside the transaction of its connection")
  func nested() throws {
    let proxy = try ConnectionProxy(database: database)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try other.unsafeReentrantWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try other.writeWithoutTransaction { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try other.vacuum() }
      #expect(throws: CofferError.nestedTransaction) { try other.erase() }
      #expect(throws: CofferError.nestedTransaction) { try connection.writeWithoutTransaction { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try proxy.flushAndWait() }
      #expect(throws: CofferError.nestedTransaction) { try proxy.setObject(1, forKey: "p", durability: .synced) }
      #expect(throws: CofferError.nestedTransaction) { try connection.concurrentRead { _ in }.wait() }
      #expect(proxy.pendingChangeCount == 0)
      #expect(try keys().isEmpty)
    }
    try connection.read { _ in
      #expect(throws: CofferError.nestedTransaction) { try connection.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try connection.unsafeReentrantWrite { _ in } }
      try other.readWrite { try $0.setObject(2, forKey: "l") }
    }
    #expect(try keys() == ["k", "l"])
  }

  @Test("1.13 read inside a write on another connection, also on one whose own thread waits for this write")
  func readOnWaitingConnection() throws {
    let isDone = DispatchSemaphore(value: 0)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "first")
      other.asyncWrite({ try $0.setObject(2, forKey: "second") }, completion: { _ in isDone.signal() })
      while !other.lending.isParked { sched_yield() }
      #expect(try keys().isEmpty)
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
    }
    isDone.wait()
    #expect(try keys() == ["first", "second"])
  }

  @Test("1.13 that give up waiting do not take a connection from the one who has borrowed it")
  func timeoutDuringLoan() throws {
    let impatient = try store.open(busyTimeout: .milliseconds(1))
    let (connection, other) = (try impatient.makeConnection(), try impatient.makeConnection())
    let result = Lock<Result<Void, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      var hasBorrowed = false
      while !hasBorrowed {
        other.asyncWrite(
          { _ in },
          completion: { outcome in
            result.withLock { $0 = outcome }
            isDone.signal()
          })
        try other.read { inner in
          // Either the other thread waits for the gate now, and gives up; or it has not begun, or given up before.
          hasBorrowed = other.lending.isParked
          while other.lending.isParked { sched_yield() }
          let keys = try inner.allKeys()
          #expect(keys.isEmpty)
        }
        isDone.wait()
      }
    }
    #expect(throws: CofferError.busy) { try result.withLock { $0 }?.get() }
    try other.readWrite { try $0.setObject(2, forKey: "l") }
    #expect(try keys() == ["k", "l"])
  }

  // MARK: 5.9

  @Test("5.9 commit each operation by itself without a transaction, and keep what was committed when an error comes")
  func withoutTransaction() throws {
    #expect(throws: Refusal.self) {
      try connection.writeWithoutTransaction { transaction in
        for key in ["a", "b"] {
          try transaction.setObject(1, forKey: key)
          let keys = try keys()
          #expect(keys.last == key)
          #expect(try transaction.snapshot() == UInt64(keys.count + 1))
        }
        try other.readWrite { try $0.setObject(1, forKey: "c") }
        #expect(try transaction.allKeys() == ["a", "b", "c"])
        throw Refusal()
      }
    }
    #expect(try keys() == ["a", "b", "c"])
    #expect(try connection.read { try $0.snapshot() } == 4)
  }

  @Test("5.9 make one transaction of a savepoint, and of a reentrant write, where there is none")
  func savepointWithoutTransaction() throws {
    try connection.writeWithoutTransaction { transaction in
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "a")
        try transaction.setObject(1, forKey: "b")
        #expect(try keys().isEmpty)
        return .commit
      }
      #expect(try keys() == ["a", "b"])
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "c")
        return .rollback
      }
      #expect(throws: Refusal.self) {
        try transaction.inSavepoint {
          try transaction.removeAllObjects()
          throw Refusal()
        }
      }
      #expect(throws: Refusal.self) {
        try connection.unsafeReentrantWrite { transaction in
          try transaction.setObject(1, forKey: "d")
          throw Refusal()
        }
      }
      try connection.unsafeReentrantWrite { transaction in
        try transaction.setObject(1, forKey: "e")
        #expect(try keys() == ["a", "b"])
      }
      // Each of them is over.
      try other.readWrite { _ in }
    }
    #expect(try keys() == ["a", "b", "e"])
  }

  @Test("5.9 enumerate without a transaction as of the start, whatever is written meanwhile, also nested")
  func enumerationWithoutTransaction() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b"] {
        try transaction.setObject(1, forKey: key)
        try transaction.setObject(1, forKey: key, inCollection: "c")
      }
    }
    var visited: [String] = []
    try connection.writeWithoutTransaction { transaction in
      try transaction.enumerateKeys { outer, _ in
        try transaction.setObject(1, forKey: "new \(outer)")
        try transaction.enumerateKeysInAllCollections { collection, inner, _ in
          try transaction.removeObject(forKey: inner, inCollection: "c")
          visited.append("\(outer) \(collection)/\(inner)")
        }
      }
    }
    #expect(
      visited == [
        "a /a", "a /b", "a /new a", "a c/a", "a c/b", "b /a", "b /b", "b /new a", "b /new b",
      ])
  }

  @Test("1.15 run sanitizers inside the transaction of the operation, also without a transaction")
  func sanitizersWithoutTransaction() throws {
    let other = other
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
      return value
    }
    rules.objectPostSanitizer = { _, _, _ in
      // It is stored, and not committed.
      #expect(try! other.read { try $0.numberOfKeys(inCollection: "c") } == 0)
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
    }
    database.setRules(rules, forCollection: "c")
    try connection.writeWithoutTransaction { try $0.setObject(1, forKey: "k", inCollection: "c") }
    #expect(try other.read { try $0.numberOfKeys(inCollection: "c") } == 1)
  }

  @Test("1.11 run a block that waits for the end at once where there is no transaction")
  func completionWithoutTransaction() throws {
    try connection.writeWithoutTransaction { [journal] transaction in
      transaction.addCompletion { journal.note("\($0)") }
      #expect(journal.take() == ["true"])
    }
  }

  @Test("5.9 call the completion in any case, on the writer, which waits for it, and let it write")
  func asyncWrite() throws {
    let isDone = DispatchSemaphore(value: 0)
    connection.asyncWrite(
      { transaction in
        try transaction.setObject(1, forKey: "a")
        return "result"
      },
      completion: { [connection, journal, other] result in
        journal.note("\((try? result.get()) ?? "-")")
        do {
          #expect(try other.read { try $0.allKeys() } == ["a"])
          try connection.readWrite { try $0.setObject(2, forKey: "b") }
        } catch {
          Issue.record(error)
        }
      })
    connection.asyncWrite(
      { transaction in
        #expect(try transaction.allKeys() == ["a", "b"])
        try transaction.setObject(1, forKey: "lost")
        throw Refusal()
      },
      completion: { [journal] (result: Result<Void, any Error>) in
        #expect(throws: Refusal.self) { try result.get() }
        journal.note("failed")
      })
    connection.asyncWriteWithoutTransaction { transaction in
      try transaction.setObject(3, forKey: "c")
      throw Refusal()
    } onError: { [connection, journal] error in
      journal.note("\(error is Refusal)")
      #expect(throws: Never.self) { try connection.readWrite { try $0.setObject(4, forKey: "d") } }
      isDone.signal()
    }
    isDone.wait()
    // Behind all that was queued before.
    #expect(try connection.read { try $0.allKeys() } == ["a", "b", "c", "d"])
    #expect(journal.take() == ["result", "failed", "true"])
  }

  @Test("5.9 call the completion also when the database is closed, or what was set before cannot be flushed")
  func asyncWriteFailing() throws {
    let isDone = DispatchSemaphore(value: 0)
    let proxy = ConnectionProxy(database: database, readOnlyConnection: other, readWriteConnection: connection)
    try other.poison()
    try proxy.setObject(1, forKey: "poison")
    connection.asyncWrite(
      { _ in Issue.record("The write must not run.") },
      completion: { [connection] result in
        #expect(throws: CofferError.self) { try result.get() }
        #expect(throws: Never.self) { _ = try connection.read { try $0.allKeys() } }
        isDone.signal()
      })
    isDone.wait()
    try other.perform { try $0.connection.execute("DROP TRIGGER poison") }
    try proxy.close()
    try database.close()
    for queue in [nil, DispatchQueue.global()] {
      connection.asyncReadWrite(
        { _ in }, on: queue,
        completion: { [connection] result in
          #expect(throws: CofferError.closed) { try result.get() }
          #expect(throws: CofferError.closed) { try connection.readWrite { _ in } }
          isDone.signal()
        })
      isDone.wait()
    }
    connection.asyncWriteWithoutTransaction { _ in
    } onError: { error in
      #expect(error as? CofferError == .closed)
      isDone.signal()
    }
    isDone.wait()
  }
}
