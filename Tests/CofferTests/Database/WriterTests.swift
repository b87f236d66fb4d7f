import CofferCompat
import CofferCrypto
import CofferStorage
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Writers") struct WriterTests {
  let store: TemporaryStore
  let database: Database
  let connection: Connection
  let other: Connection
  let journal = Journal()

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    other = try database.makeConnection()
  }

  func keys() throws -> [String] {
    try other.read { try $0.allKeys() }
  }

  // MARK: 1.11, 1.13

  @Test("1.13 detect a write inside a write on any connection, and a read inside the transaction of its connection")
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
      other.asyncWrite({ try $0.setObject(2, forKey: "second") }, completion: { _, _ in isDone.signal() })
      while !other.lending.isParked { sched_yield() }
      #expect(try keys().isEmpty)
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
    }
    isDone.wait()
    #expect(try keys() == ["first", "second"])
  }

  @Test("1.13 that give up waiting do not take a connection from its borrower")
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
          completion: { _, outcome in
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

  // MARK: 1.14

  @Test("1.14 leave a reader the snapshot of its first read, despite concurrent writes")
  func readerDuringWrite() throws {
    try connection.readWrite { try $0.setObject("old", forKey: "k") }
    try connection.readWrite { transaction in
      try transaction.setObject("new", forKey: "k")
      #expect(try other.read { try $0.object(forKey: "k") } == "old")
    }
    try other.read { reader in
      #expect(try reader.object(forKey: "k") == "new")
      for number in 0..<10 {
        try connection.readWrite { try $0.setObject("later", forKey: "\(number)") }
        try connection.readWrite { try $0.setObject("later", forKey: "k") }
        #expect(try reader.numberOfKeys() == 1)
        #expect(try reader.object(forKey: "k") == "new")
        #expect(try !reader.hasObject(forKey: "\(number)"))
      }
    }
    #expect(try other.read { try $0.object(forKey: "k") } == "later")
  }

  @Test("5.9 join the write of this thread if reentrant, and begin one otherwise")
  func reentrantWrite() throws {
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer, extent: .databaseLifetime)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a")
      try connection.unsafeReentrantWrite { inner in
        #expect(try inner.allKeys() == ["a"])
        try inner.setObject(1, forKey: "b")
        try connection.unsafeReentrantWrite { try $0.setObject(1, forKey: "c") }
      }
      #expect(try transaction.allKeys() == ["a", "b", "c"])
      #expect(throws: CofferError.nestedTransaction) { try other.unsafeReentrantWrite { _ in } }
      #expect(try keys().isEmpty)
    }
    #expect(
      journal.takeWithoutValues() == [
        "a inserted a", "a inserted b", "a inserted c", "a willCommit", "a didCommit",
      ])
    try connection.unsafeReentrantWrite { try $0.setObject(1, forKey: "d") }
    #expect(journal.takeWithoutValues() == ["a inserted d", "a willCommit", "a didCommit"])
    #expect(throws: Refusal.self) {
      try connection.unsafeReentrantWrite { transaction in
        try transaction.removeAllObjects()
        throw Refusal()
      }
    }
    #expect(try keys() == ["a", "b", "c", "d"])
  }

  @Test("5.9 let a concurrent read see what is committed at the call, while the writer continues")
  func concurrentRead() throws {
    let mayRead = DispatchSemaphore(value: 0)
    let future = try connection.writeWithoutTransaction { transaction in
      try transaction.setObject(1, forKey: "a")
      let future = connection.concurrentRead { reader in
        mayRead.wait()
        return try reader.allKeys()
      }
      try transaction.setObject(1, forKey: "b")
      try transaction.removeObject(forKey: "a")
      mayRead.signal()
      // From inside of the writer, too.
      #expect(try future.wait() == ["a"])
      return future
    }
    #expect(try future.wait() == ["a"])
    try connection.readWrite { transaction in
      #expect(throws: CofferError.nestedTransaction) { try connection.concurrentRead { _ in }.wait() }
      let keys = try other.concurrentRead { try $0.allKeys() }.wait()
      #expect(keys == ["b"])
    }
    let failing: DatabaseFuture<Void> = connection.concurrentRead { _ in throw Refusal() }
    for _ in 0..<2 { #expect(throws: Refusal.self) { try failing.wait() } }
    // Readers are reused, and release the snapshots they had pinned.
    let futures = (0..<20).map { _ in connection.concurrentRead { try $0.allKeys() } }
    for future in futures { #expect(try future.wait() == ["b"]) }
    try database.close()
    #expect(throws: CofferError.closed) { try connection.concurrentRead { _ in }.wait() }
  }

  @Test("5.9 erase everything")
  func erase() throws {
    try connection.readWrite { transaction in
      for collection in ["", "c"] { try transaction.setObject(1, forKey: "k", inCollection: collection) }
    }
    let snapshot = try connection.read { try $0.commitNumber() }
    try connection.erase()
    try connection.erase()
    try other.read { transaction in
      let count = try transaction.numberOfKeysInAllCollections()
      #expect(count == 0)
      #expect(try transaction.allCollections().isEmpty)
      #expect(try transaction.commitNumber() == snapshot + 1)
    }
    try connection.vacuum()
    try connection.beginLongLivedReadTransaction()
    #expect(throws: CofferError.longLivedReadTransaction) { try connection.erase() }
    #expect(throws: CofferError.longLivedReadTransaction) { try connection.vacuum() }
    #expect(throws: CofferError.longLivedReadTransaction) { try connection.writeWithoutTransaction { _ in } }
  }

  @Test("5.10 erase everything and rebuild the file from a task, but not from a cancelled one")
  func eraseFromTask() async throws {
    let writer: any DatabaseWriter = connection
    try await writer.write { try $0.setObject(String(repeating: "x", count: 100_000), forKey: "k") }
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await #expect(throws: CancellationError.self) { try await writer.erase() }
      await #expect(throws: CancellationError.self) { try await writer.vacuum() }
    }
    await cancelled.value
    #expect(try await writer.read { try $0.numberOfKeys() } == 1)
    try await writer.erase()
    #expect(try await writer.read { try $0.numberOfKeys() } == 0)
    func freePageCount() async throws -> Int64 {
      try await connection.performing { session, _ in
        try session.read {
          var count: Int64 = 0
          try session.connection.statement("PRAGMA freelist_count").query { count = $0.integer(0) }
          return count
        }
      }
    }
    #expect(try await freePageCount() > 0)
    try await writer.vacuum()
    #expect(try await freePageCount() == 0)
  }
}
