import CofferCompat
import CofferStorage
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Versions") struct VersionTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  private func version(_ key: String = "k") throws -> CommitNumber {
    try connection.read { try $0.version(forKey: key) }
  }

  private func commitNumber() throws -> CommitNumber {
    try connection.read { try $0.commitNumber() }
  }

  // MARK: - What they are

  @Test("are the number of the commit that changed an item last")
  func numbers() throws {
    for number in 1...3 {
      try connection.readWrite { try $0.setObject(number, forKey: "k") }
      #expect(try version() == commitNumber())
    }
    let earlier = try version()
    try connection.readWrite { try $0.setObject(1, forKey: "other") }
    #expect(try version() == earlier)
    #expect(try version("other") == earlier + 1)
    try connection.readWrite { transaction in
      try transaction.replaceMetadata("m", forKey: "k")
      try transaction.replaceObject(5, forKey: "other")
    }
    #expect(try version() == earlier + 2)
    #expect(try version("other") == earlier + 2)
    try connection.readWrite { transaction in
      try transaction.setObject(6, forKey: "other")
      #expect(try transaction.version(forKey: "other") == transaction.commitNumber() + 1)
    }
    #expect(try version("other") == commitNumber())
  }

  @Test("stay where nothing changes: equal values, touching, failed and rolled back writes")
  func unchanged() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", withMetadata: 2) }
    let before = try connection.read { try $0.item(forKey: "k") }
    let absent = try version("absent")
    #expect(absent == 0)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k", withMetadata: 2)
      try transaction.replaceObject(1, forKey: "k")
      try transaction.replaceMetadata(2, forKey: "k")
      try transaction.touchRow(forKey: "k")
      try transaction.inSavepoint {
        try transaction.setObject(3, forKey: "k")
        return .rollback
      }
    }
    #expect(try connection.read { try $0.item(forKey: "k") } == before)
    try connection.readWrite { transaction in
      try transaction.setObject(3, forKey: "k")
      try transaction.setObject(3, forKey: "absent")
      transaction.rollback()
    }
    #expect(try connection.read { try $0.item(forKey: "k") } == before)
    #expect(try version("absent") == 0)
  }

  @Test("are never reused after an item, its collection or everything was removed and set again")
  func reuse() throws {
    var seen: Set<Int64> = []
    for round in 0..<4 {
      try connection.readWrite { transaction in
        try transaction.setObject("same", forKey: "k", inCollection: "c")
        try transaction.setObject("other", forKey: "k", inCollection: "c")
      }
      let version = try connection.read { try $0.version(forKey: "k", inCollection: "c") }
      #expect(seen.insert(version).inserted)
      try connection.readWrite { transaction in
        switch round {
        case 0: try transaction.removeObject(forKey: "k", inCollection: "c")
        case 1: try transaction.removeAllObjects(inCollection: "c")
        default: try transaction.removeAllObjectsInAllCollections()
        }
      }
      #expect(throws: CofferError.versionMismatch(collection: "c", key: "k", expected: version, actual: 0)) {
        try connection.readWrite { try $0.setObject("late", forKey: "k", inCollection: "c", ifVersion: version) }
      }
    }
    #expect(seen.count == 4)
  }

  @Test("continue after the commits of other connections and processes")
  func others() throws {
    let other = try database.makeConnection()
    var last: Int64 = 0
    for number in 0..<6 {
      try (number % 2 == 0 ? connection : other).readWrite { try $0.setObject(number, forKey: "k") }
      if number == 3 { #expect(try store.worker("insert", "x", "3").status == 0) }
      // Commits of another one in between, and changes undone by a rollback.
      try connection.readWrite { transaction in
        try transaction.setObject(-1, forKey: "k")
        transaction.rollback()
      }
      #expect(try version() > last)
      last = try version()
      #expect(try last == commitNumber() || number == 3)
    }
    let theirs = try connection.read { try $0.version(forKey: "x2", inCollection: "numbers") }
    #expect(theirs > 0)
    #expect(try Set(connection.read { try $0.itemInfos(inCollection: "numbers") }.map(\.version)).count == 3)
  }

  @Test("are read with kind, size and time of an item, without its value, also for unusual keys")
  func info() throws {
    try connection.setTime(1_700_000_000)
    let keys = ["", "a\0b", "\0", "é", String(repeating: "k", count: 1024)]
    for backing in [connection, try Database.inMemory().makeConnection()] {
      try backing.setTime(1_700_000_000)
      try backing.readWrite { transaction in
        for key in keys { try transaction.setObject(Data(count: 50_000), forKey: key, withMetadata: "m") }
        try transaction.setObject(7, forKey: "", inCollection: "\0")
      }
      try backing.read { transaction in
        for key in keys {
          let info = try #require(try transaction.info(forKey: key))
          #expect(info.kind == .data && info.byteCount == 50_000 && info.key == key && info.collection == "")
          #expect(try info.version == transaction.commitNumber())
          #expect(info.modified == Date(timeIntervalSince1970: 1_700_000_000))
          #expect(try transaction.itemInfos().contains(info))
          #expect(try transaction.version(forKey: key) == info.version)
        }
        #expect(try transaction.info(forKey: "", inCollection: "\0")?.kind == .int)
        #expect(try transaction.info(forKey: "absent") == nil)
        #expect(try transaction.info(forKey: "k", inCollection: "absent") == nil)
        #expect(try transaction.version(forKey: "k", inCollection: "absent") == 0)
      }
    }
  }

  // MARK: - Conditions

  @Test("allow a write only over the version that was read")
  func conditions() throws {
    try connection.readWrite { try $0.setObject("a", forKey: "k", withMetadata: "m") }
    let first = try version()
    try connection.readWrite { try $0.setObject("b", forKey: "k", ifVersion: first) }
    let second = try version()
    #expect(second > first)
    #expect(try connection.read { try $0.metadata(forKey: "k", as: String.self) } == nil)
    let mismatch = CofferError.versionMismatch(collection: "", key: "k", expected: first, actual: second)
    #expect(throws: mismatch) { try connection.readWrite { try $0.setObject("c", forKey: "k", ifVersion: first) } }
    #expect(throws: mismatch) { try connection.readWrite { try $0.removeObject(forKey: "k", ifVersion: first) } }
    #expect(throws: mismatch) { try connection.readWrite { try $0.require(version: first, forKey: "k") } }
    #expect(try connection.read { try $0.object(forKey: "k") } == "b")
    #expect("\(mismatch)".contains("has version \(second)"))

    try connection.readWrite { transaction in
      try transaction.require(version: second, forKey: "k")
      try transaction.setObject("c", forKey: "k", withMetadata: "n", ifVersion: second)
      // The transaction's own changes count, too.
      #expect(throws: CofferError.self) { try transaction.setObject("d", forKey: "k", ifVersion: second) }
    }
    let row = try connection.read { try $0.row(forKey: "k", as: String.self, metadata: String.self) }
    #expect(row?.object == "c" && row?.metadata == "n")
    let third = try version()
    try connection.readWrite { transaction in
      let stored = try #require(try transaction.serializedRow(forKey: "k"))
      try transaction.setSerializedObject(stored.metadata ?? stored.object, forKey: "k", ifVersion: third)
      #expect(try transaction.object(forKey: "k") == "n")
    }
    try connection.readWrite { try $0.removeObject(forKey: "k", ifVersion: try $0.version(forKey: "k")) }
    #expect(try version() == 0)
    // nil as an object removes.
    try connection.readWrite { transaction in
      try transaction.setObject("a", forKey: "k")
      try transaction.setObject(String?.none, forKey: "k", ifVersion: try transaction.version(forKey: "k"))
    }
    #expect(try version() == 0)
  }

  @Test("of 0 mean that there is no such key")
  func absent() throws {
    for key in ["k", "", "\0"] {
      try connection.readWrite { try $0.setObject(1, forKey: key, ifVersion: 0) }
      let found = try version(key)
      let mismatch = CofferError.versionMismatch(collection: "", key: key, expected: 0, actual: found)
      #expect(throws: mismatch) { try connection.readWrite { try $0.setObject(2, forKey: key, ifVersion: 0) } }
      #expect(throws: mismatch) { try connection.readWrite { try $0.removeObject(forKey: key, ifVersion: 0) } }
      #expect(try connection.read { try $0.object(forKey: key) } == 1)
    }
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "with", inCollection: "new", withMetadata: "m", ifVersion: 0)
      try transaction.removeObject(forKey: "none", ifVersion: 0)
      #expect(try transaction.metadata(forKey: "with", inCollection: "new") == "m")
      #expect(throws: CofferError.versionMismatch(collection: "new", key: "none", expected: 3, actual: 0)) {
        try transaction.setObject(1, forKey: "none", inCollection: "new", ifVersion: 3)
      }
    }
    let gone = CofferError.versionMismatch(collection: "", key: "k", expected: 3, actual: 0)
    #expect("\(gone)".contains("does not exist, but was expected to have version 3"))
  }

  @Test("that do not match leave the rest of the transaction unchanged, and report nothing that was not done")
  func caught() throws {
    let journal = Journal()
    let observer = TestObserver("o", journal)
    try connection.readWrite { try $0.setObject("a", forKey: "k") }
    let before = try connection.read { try $0.commitNumber() }
    database.add(transactionObserver: observer)
    try connection.readWrite { transaction in
      try transaction.setObject("kept", forKey: "other")
      #expect(throws: CofferError.self) { try transaction.setObject("b", forKey: "k", ifVersion: 0) }
      #expect(throws: CofferError.self) { try transaction.removeObject(forKey: "k", ifVersion: 0) }
    }
    #expect(
      journal.take() == ["o will other: - kept", "o inserted other", "o willCommit", "o didCommit"])
    #expect(try connection.read { try $0.object(forKey: "k") } == "a")
    #expect(try connection.read { try $0.changes(since: before) }?.changedKeys() == ["other"])
    // A condition is looked at before anything is encoded or sanitized.
    struct Unencodable: Encodable {
      func encode(to encoder: any Encoder) throws { throw Refusal() }
    }
    #expect(throws: CofferError.versionMismatch(collection: "", key: "k", expected: 0, actual: try version())) {
      try connection.readWrite { try $0.setObject(Unencodable(), forKey: "k", ifVersion: 0) }
    }
  }

  @Test("are checked in the transaction of the write if operations commit by themselves")
  func withoutTransaction() throws {
    try connection.writeWithoutTransaction { transaction in
      try transaction.setObject("a", forKey: "k")
      let version = try transaction.version(forKey: "k")
      try transaction.setObject("b", forKey: "k", ifVersion: version)
      #expect(throws: CofferError.self) { try transaction.setObject("c", forKey: "k", ifVersion: version) }
      try transaction.removeObject(forKey: "k", ifVersion: version + 1)
      try transaction.setObject("d", forKey: "k", ifVersion: 0)
    }
    #expect(try connection.read { try $0.object(forKey: "k") } == "d")
  }

  @Test("let exactly one of many connections win that have read the same one")
  func race() throws {
    try connection.readWrite { try $0.setObject(-1, forKey: "k") }
    for _ in 0..<20 {
      let version = try version()
      let connections = try (0..<4).map { _ in try database.makeConnection() }
      let winners = Kept()
      DispatchQueue.concurrentPerform(iterations: 4) { number in
        do {
          try connections[number].readWrite {
            try $0.setObject("\(version) \(number)", forKey: "k", ifVersion: version)
          }
          winners.hold(connections[number])
        } catch CofferError.versionMismatch(_, _, let expected, let actual) {
          #expect(expected == version && actual == version + 1)
        } catch {
          Issue.record(error)
        }
      }
      #expect(winners.count == 1)
    }
  }

  @Test("make counters of several processes that lose no increment")
  func processes() throws {
    let processes = try (0..<2).map { _ in try store.startWorker("increment", "n", "150") }
    #expect(try store.worker("increment", "n", "150").status == 0)
    for process in processes {
      #expect(process.end() == 0)
    }
    #expect(try connection.read { try $0.object(forKey: "n", inCollection: "counters") } == 450)
  }

  @Test("are readable in a read-only store, and conditional writes there throw")
  func readOnly() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    let version = try version()
    try database.close()
    let reader = try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true)).makeConnection()
    #expect(try reader.read { try $0.info(forKey: "k") }?.version == version)
    #expect(throws: CofferError.readOnly) {
      try reader.readWrite { try $0.setObject(2, forKey: "k", ifVersion: version) }
    }
  }

  @Test("of older tables are refused", arguments: [1, 5, 8, 10])
  func olderTables(_ version: Int) throws {
    try connection.perform { try $0.connection.execute("PRAGMA user_version = \(version)") }
    try database.close()
    let reason =
      "its version is \(version); if a pre-release version made it, export it with that version"
    #expect(throws: CofferError.damaged(part: "schema", reason: reason)) { try store.open() }
  }
}
