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
}
