import CofferCompat
import CofferCrypto
import Foundation
import Logging
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Long-lived reads") struct LongLivedReadTests {
  private let store: TemporaryStore
  private let database: Database
  private let reader: Connection
  private let writer: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    try writer.readWrite { try $0.setObject(0, forKey: "k") }
  }

  private func value(_ connection: Connection) throws -> Int? {
    try connection.read { try $0.object(forKey: "k") }
  }

  @Test("3.1 pin a snapshot, and return exactly the commits they skip")
  func pinning() throws {
    #expect(try reader.beginLongLivedReadTransaction().isEmpty)
    for number in 1...3 {
      try writer.readWrite { transaction in
        try transaction.setObject(number, forKey: "k")
        try transaction.setObject(number, forKey: "\(number)")
        transaction.notificationCustomObject = number
      }
    }
    #expect(try value(reader) == 0)
    #expect(try value(writer) == 3)
    let jumped = try reader.beginLongLivedReadTransaction()
    #expect(jumped.count == 3)
    #expect(jumped.map { $0.changedKeys() } == [["1", "k"], ["2", "k"], ["3", "k"]])
    #expect(jumped.flatMap(\.customObjects) as? [Int] == [1, 2, 3])
    #expect(jumped.map(\.origin) == Array(repeating: .connection(writer.id), count: 3))
    #expect(try value(reader) == 3)

    #expect(try store.worker("insert", "x", "1").status == 0)
    try writer.readWrite { try $0.setObject(4, forKey: "k") }
    #expect(try value(reader) == 3)
    let pending = try reader.endLongLivedReadTransaction()
    #expect(pending.map(\.origin) == [.elsewhere, .connection(writer.id)])
    #expect(try value(reader) == 4)
    #expect(try reader.endLongLivedReadTransaction().isEmpty)
    #expect(try !reader.isInLongLivedReadTransaction)
  }

  @Test("3.1 know the origin of the commits they skip, also if the last listener has ended meanwhile")
  func listenerGone() throws {
    let isHeard = DispatchSemaphore(value: 0)
    let registration = try database.onCommit { _ in isHeard.signal() }
    try reader.beginLongLivedReadTransaction()
    try writer.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      transaction.notificationCustomObject = "kept"
    }
    #expect(isHeard.wait(timeout: .now() + 30) == .success)
    registration.cancel()
    // Another registration follows the end of the first one.
    try database.onCommit { _ in }.cancel()
    let jumped = try reader.beginLongLivedReadTransaction()
    #expect(jumped.map(\.origin) == [.connection(writer.id)])
    #expect(jumped.flatMap(\.customObjects) as? [String] == ["kept"])
  }

  @Test("3.1 name a collection that another process removed meanwhile")
  func removedCollection() throws {
    try writer.readWrite { try $0.setObject(1, forKey: "k", inCollection: "gone") }
    try reader.beginLongLivedReadTransaction()
    #expect(try store.worker("clear", "gone").status == 0)
    let jumped = try reader.beginLongLivedReadTransaction()
    #expect(jumped.hasChange(forKey: "k", inCollection: "gone") && jumped.didClear(collection: "gone"))
  }

  @Test("3.2 throw on a write, a vacuum or an erasure, and continue")
  func writes() throws {
    try reader.beginLongLivedReadTransaction()
    #expect(throws: CofferError.longLivedReadTransaction) { try reader.readWrite { _ in } }
    #expect(throws: CofferError.longLivedReadTransaction) { try reader.writeWithoutTransaction { _ in } }
    #expect(throws: CofferError.longLivedReadTransaction) { try reader.vacuum() }
    #expect(throws: CofferError.longLivedReadTransaction) { try reader.erase() }
    #expect(try reader.isInLongLivedReadTransaction)
    #expect(try value(reader) == 0)
  }

  @Test("3.3 are ended when the log has grown too large, and the log then shrinks")
  func expiry() throws {
    let store = try TemporaryStore()
    let database = try Database.openOrCreate(
      at: store.path, key: store.key,
      options: .init(logByteLimit: 1 << 20, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    let (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    try writer.readWrite { try $0.setObject(0, forKey: "k") }
    try reader.beginLongLivedReadTransaction()
    var number = 0
    let isExpired = { () throws -> Bool in
      do {
        _ = try reader.read { try $0.object(forKey: "k", as: Int.self) }
        return false
      } catch CofferError.snapshotExpired {
        return true
      }
    }
    while try !isExpired() {
      number += 1
      try writer.readWrite { try $0.setObject(Data(count: 50_000 + number), forKey: "\(number % 10)") }
      try #require(number < 500, "the read is never ended")
    }
    let jumped = try reader.beginLongLivedReadTransaction()
    #expect(jumped.count == number)
    #expect(try reader.read { try $0.object(forKey: "k") } == 0)
    try reader.endLongLivedReadTransaction()
    for number in 0..<200 {
      try writer.readWrite { try $0.setObject(Data(count: 40_000 + number), forKey: "\(number % 10)") }
    }
    #expect(try database.status().logByteCount < 20 << 20)
  }

  @Test("3.3 of another process are reported once, and continue")
  func otherProcess() throws {
    let store = try TemporaryStore()
    let warnings = LoggedMessages()
    let database = try Database.openOrCreate(
      at: store.path, key: store.key,
      options: .init(
        logByteLimit: 1 << 20,
        logger: Logger(label: "test") { _ in
          CallingLogHandler { warning in warnings.all.withLock { $0.append("\(warning.message)") } }
        }))
    let process = try store.startWorker("hold-snapshot")
    #expect(process.readLine() == "pinned")
    let writer = try database.makeConnection()
    for number in 0..<100 { try writer.readWrite { try $0.setObject(Data(count: 50_000 + number), forKey: "k") } }
    let messages = warnings.all.withLock { $0 }
    #expect(messages.count == 1)
    #expect(messages.first?.contains("another process") ?? false)
    try process.input.close()
    #expect(process.end() == 0)
  }
}
