import CofferCompat
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Transactions") struct TransactionTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  @Test("1.1 in a new store find every count 0, every list empty and every key absent")
  func newStore() throws {
    try connection.readWrite { transaction in
      #expect(try transaction.numberOfCollections() == 0)
      #expect(try transaction.numberOfKeysInAllCollections() == 0)
      #expect(try transaction.numberOfKeys() == 0)
      #expect(try transaction.allCollections().isEmpty)
      #expect(try transaction.allKeys(inCollection: "none").isEmpty)
      #expect(try transaction.value(forKey: "none") == nil)
      #expect(try transaction.metadata(forKey: "none", as: String.self) == nil)
      #expect(try transaction.item(forKey: "none") == nil)
      #expect(try !transaction.hasObject(forKey: "none"))
      try transaction.removeObject(forKey: "none")
      try transaction.removeAllObjects(inCollection: "none")
    }
    #expect(try connection.read { try $0.commitNumber() } == 1)
  }

  @Test("1.2 accept any string as a key or name, and compare by UTF-8 bytes")
  func names() throws {
    let names = [
      "", ".", "a.b", "/", "a\0b", "a\0c", "e\u{301}", "\u{e9}", "🗝", String(repeating: "k", count: 1024), "'; --",
    ]
    try connection.readWrite { transaction in
      for (index, collection) in names.enumerated() {
        for (number, key) in names.enumerated() {
          try transaction.setObject(index * 100 + number, forKey: key, inCollection: collection)
        }
      }
    }
    let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { Array($0.utf8) }
    try connection.read { transaction in
      let collections = try transaction.allCollections()
      #expect(collections.map { Array($0.utf8) } == sorted)
      for (index, collection) in names.enumerated() {
        #expect(try transaction.allKeys(inCollection: collection).map { Array($0.utf8) } == sorted)
        for (number, key) in names.enumerated() {
          #expect(try transaction.object(forKey: key, inCollection: collection) == index * 100 + number)
        }
      }
    }
  }

  @Test("1.3 clear metadata if none is given, and remove a key set to nil")
  func metadata() throws {
    try connection.readWrite { transaction in
      try transaction.setObject("object", forKey: "k", withMetadata: ["m": 1])
      #expect(try transaction.metadata(forKey: "k") == ["m": 1])
      try transaction.setObject("object", forKey: "k")
      #expect(try transaction.metadata(forKey: "k", as: [String: Int].self) == nil)
      #expect(try transaction.object(forKey: "k") == "object")
      try transaction.setObject(nil as String?, forKey: "k")
      #expect(try !transaction.hasObject(forKey: "k"))
      try transaction.setObject("again", forKey: "k")
      try transaction.setObject(nil, forKey: "k")
      #expect(try !transaction.hasObject(forKey: "k"))
    }
  }

  @Test("1.6 refuse values that cannot be encoded, changing nothing, and report those that cannot be decoded")
  func coding() throws {
    struct Unencodable: Codable {
      init() {}
      init(from decoder: any Decoder) throws {}
      func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue("hunter2", .init(codingPath: [], debugDescription: "hunter2"))
      }
    }
    try connection.readWrite { transaction in
      try transaction.setObject("kept", forKey: "k", inCollection: "c")
      let error = #expect(throws: CofferError.self) {
        try transaction.setObject(Unencodable(), forKey: "k", inCollection: "c")
      }
      #expect(error == .notEncodable(collection: "c", key: "k", reason: "it cannot be encoded"))
      #expect(try transaction.object(forKey: "k", inCollection: "c") == "kept")
      #expect {
        try transaction.object(forKey: "k", inCollection: "c", as: Int.self)
      } throws: { error in
        guard case CofferError.notDecodable("c", "k", "string", "Int", _) = error else { return false }
        return !"\(error)".contains("kept")
      }
    }
  }

  @Test("1.8 list keys in the order of their bytes, each collection on its own")
  func order() throws {
    try connection.readWrite { transaction in
      for key in ["b", "a", "B", "é", "z", ""] { try transaction.setObject(1, forKey: key, inCollection: "two") }
      try transaction.setObject(1, forKey: "x", inCollection: "one")
    }
    try connection.read { transaction in
      let collections = try transaction.allCollections()
      #expect(collections == ["one", "two"])
      #expect(try transaction.allKeys(inCollection: "two") == ["", "B", "a", "b", "z", "é"])
      #expect(try transaction.itemInfos(inCollection: "two").map(\.key) == ["", "B", "a", "b", "z", "é"])
    }
  }

  @Test("1.9 that are rolled back change nothing, before and after the call, and a later set is durable")
  func rollback() throws {
    try connection.readWrite { try $0.setObject("old", forKey: "k") }
    let snapshot = try connection.read { try $0.commitNumber() }
    try connection.readWrite { transaction in
      try transaction.setObject("new", forKey: "k")
      try transaction.setObject(1, forKey: "inserted", inCollection: "other")
      transaction.rollback()
      try transaction.setObject("later", forKey: "k2")
    }
    try connection.read { transaction in
      let object: String? = try transaction.object(forKey: "k")
      #expect(object == "old")
      #expect(try transaction.allKeys() == ["k"])
      #expect(try transaction.allCollections() == [""])
      #expect(try transaction.commitNumber() == snapshot)
    }
    try connection.readWrite { try $0.setObject(2, forKey: "inserted", inCollection: "other") }
    try database.close()
    let reopened: Int? = try store.open().makeConnection().read {
      try $0.object(forKey: "inserted", inCollection: "other")
    }
    #expect(reopened == 2)
  }

  @Test("1.10 roll back on a thrown error, and rethrow it")
  func thrownError() throws {
    struct Mine: Error {}
    #expect(throws: Mine.self) {
      try connection.readWrite { transaction in
        try transaction.setObject(1, forKey: "k")
        throw Mine()
      }
    }
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
  }

  @Test("1.13 inside a transaction of the same connection throw, and never deadlock")
  func nested() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      #expect(throws: CofferError.nestedTransaction) { try connection.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try connection.read { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try database.close() }
      let other = try database.makeConnection()
      try other.read { inner in
        let keys = try inner.allKeys()
        #expect(keys.isEmpty)
        #expect(throws: CofferError.nestedTransaction) { try connection.read { _ in } }
      }
    }
    #expect(try connection.read { try $0.allKeys() } == ["k"])
  }

  @Test("2.2 that change nothing are not a commit")
  func withoutEffect() throws {
    try connection.readWrite { try $0.setObject(["a": 1], forKey: "k", withMetadata: "m") }
    let snapshot = try connection.read { try $0.commitNumber() }
    let item = try connection.read { try $0.item(forKey: "k") }
    try connection.readWrite { transaction in
      try transaction.setObject(["a": 1], forKey: "k", withMetadata: "m")
      try transaction.removeObject(forKey: "none")
      try transaction.setObject(1, forKey: "passing")
      try transaction.removeObject(forKey: "passing")
    }
    #expect(try connection.read { try $0.commitNumber() } == snapshot)
    #expect(try connection.read { try $0.item(forKey: "k") } == item)
  }

  @Test("in memory behave like those on disk")
  func inMemory() throws {
    let database = try Database.inMemory()
    let (writer, reader) = (try database.makeConnection(), try database.makeConnection())
    try writer.readWrite { try $0.setObject("v", forKey: "k") }
    try reader.read { transaction in
      #expect(try transaction.object(forKey: "k") == "v")
      try writer.readWrite { try $0.setObject("w", forKey: "k") }
      #expect(try transaction.object(forKey: "k") == "v")
    }
    #expect(try reader.read { try $0.object(forKey: "k") } == "w")
    let another = try Database.inMemory().makeConnection()
    #expect(try another.read { try $0.allKeys() }.isEmpty)
  }

  @Test("in memory hold a lot, with readers and a writer at the same time")
  func inMemoryLoad() async throws {
    let database = try Database.inMemory(options: .init(busyTimeout: .seconds(120)))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          let connection = try database.makeConnection()
          for number in 0..<200 {
            try await connection.readWrite {
              try $0.setObject(String(repeating: "x", count: 500), forKey: "\(worker).\(number)")
            }
            _ = try await connection.read { try $0.numberOfKeys() }
          }
        }
      }
      try await group.waitForAll()
    }
    let count = try await database.makeConnection().read { try $0.numberOfKeys() }
    #expect(count == 800)
  }
}
