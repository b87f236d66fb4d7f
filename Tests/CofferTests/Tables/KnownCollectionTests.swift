import CofferCompat
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("The knowledge of a connection about collections")
struct KnownCollectionTests {
  private let store: TemporaryStore
  private let connection: Connection
  private let other: Connection

  init() throws {
    store = try TemporaryStore()
    let database = try store.open()
    connection = try database.makeConnection()
    other = try database.makeConnection()
  }

  private func set(_ value: Int, _ key: String) throws {
    try connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "c") }
  }

  private struct Stop: Error {}

  @Test("is dropped if another one has removed the collection: the next write recreates it")
  func removedByAnother() throws {
    try set(1, "a")
    try other.readWrite { try $0.removeAllObjects(inCollection: "c") }
    try set(2, "b")
    let items = try other.read { transaction in
      try transaction.allKeys(inCollection: "c").map {
        ($0, try transaction.object(forKey: $0, inCollection: "c", as: Int.self))
      }
    }
    #expect(items.map(\.0) == ["b"] && items.map(\.1) == [2])
    #expect(try other.read { try $0.allCollections() } == ["c"])
  }

  @Test("has nothing of what was rolled back, ended in an error, or was undone by a savepoint")
  func rolledBack() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a", inCollection: "c")
      transaction.rollback()
    }
    try set(2, "a")
    #expect(try other.read { try $0.object(forKey: "a", inCollection: "c", as: Int.self) } == 2)
    try connection.readWrite { try $0.removeAllObjects(inCollection: "c") }

    #expect(throws: Stop.self) {
      try connection.readWrite { transaction in
        try transaction.setObject(3, forKey: "a", inCollection: "c")
        throw Stop()
      }
    }
    try set(4, "a")
    #expect(try other.read { try $0.object(forKey: "a", inCollection: "c", as: Int.self) } == 4)
    try connection.readWrite { try $0.removeAllObjects(inCollection: "c") }

    try connection.readWrite { transaction in
      try transaction.inSavepoint {
        try transaction.setObject(5, forKey: "a", inCollection: "c")
        return .rollback
      }
      try transaction.setObject(6, forKey: "b", inCollection: "c")
    }
    try set(7, "a")
    #expect(try other.read { try $0.allKeys(inCollection: "c") } == ["a", "b"])
    // A row of no collection would be found by the check.
    #expect(try connection.database.verify().problems.isEmpty)
  }

  @Test("includes that another one has turned history on meanwhile")
  func declaredByAnother() throws {
    try set(1, "a")
    try other.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "c") }
    try set(2, "a")
    try other.readWrite { try $0.setHistoryLimits(nil, forCollection: "c") }
    try set(3, "a")
    #expect(try other.read { try $0.historyLimits(forCollection: "c") } == nil)
    try other.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "c") }
    try set(4, "a")
    let earlier = try other.read { try $0.history(forKey: "a", inCollection: "c") }
    // What was kept before history was turned off, and what is kept since it is on again.
    #expect(earlier.map(\.value) == [.int(3), .int(1)])
  }

  @Test("is current after reads of the same connection, with writes of another one between them")
  func readsBetween() throws {
    for round in 0..<20 {
      try set(round, "a")
      #expect(try connection.read { try $0.object(forKey: "a", inCollection: "c", as: Int.self) } == round)
      if round % 3 == 0 { try other.readWrite { try $0.removeAllObjects(inCollection: "c") } }
      let isThere = try connection.read { try $0.hasObject(forKey: "a", inCollection: "c") }
      #expect(isThere == (round % 3 != 0))
    }
  }

  @Test("is bounded, whatever the number of collections, and correct beyond the bound")
  func many() throws {
    let names = (0..<2500).map { "collection \($0)" }
    for value in 1...2 {
      try connection.readWrite { transaction in
        for name in names { try transaction.setObject(value, forKey: "a", inCollection: name) }
      }
    }
    let counts = try other.read { transaction in
      (
        try transaction.numberOfCollections(), try transaction.numberOfKeysInAllCollections(),
        try transaction.object(forKey: "a", inCollection: names[0], as: Int.self)
      )
    }
    #expect(counts == (names.count, names.count, 2))
  }
}
