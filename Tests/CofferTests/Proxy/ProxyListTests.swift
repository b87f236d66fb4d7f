import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("The lists of a proxy") struct ProxyListTests {
  private let store: TemporaryStore
  private let database: Database
  private let proxy: ConnectionProxy

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try database.makeConnection().readWrite { transaction in
      for collection in ["full", "emptied", "cleared", "refilled"] {
        for key in ["a", "b"] { try transaction.setObject(1, forKey: key, inCollection: collection) }
      }
    }
  }

  @Test("have all collections with visible items, including pending ones")
  func collections() throws {
    try proxy.removeObjects(forKeys: ["a", "b"], inCollection: "emptied")
    try proxy.removeAllObjects(inCollection: "cleared")
    try proxy.removeAllObjects(inCollection: "refilled")
    try proxy.setObject(2, forKey: "c", inCollection: "refilled")
    try proxy.removeObject(forKey: "a", inCollection: "full")
    try proxy.setObject(1, forKey: "a", inCollection: "new")
    try proxy.replaceObject(1, forKey: "nothing", inCollection: "replaced")
    let expected = ["full", "new", "refilled"]
    #expect(try proxy.allCollections() == expected)
    #expect(try proxy.allKeys(inCollection: "full") == ["b"])
    try proxy.flushAndWait()
    #expect(try proxy.allCollections() == expected)
    proxy.fetchedCollectionsFilter = .except(["full"])
    #expect(try proxy.allCollections() == ["new", "refilled"])
  }

  @Test("handle 100,000 pending changes in as many collections quickly")
  func many() throws {
    try proxy.performBatch { batch in
      for number in 0..<100_000 { try batch.setObject(number, forKey: "key", inCollection: "\(number)") }
    }
    #expect(try proxy.allCollections().count == 100_004)
  }

  @Test("of keys and their number read no values, so values of unknown types do not matter")
  func keys() throws {
    try database.makeConnection().perform { session in
      try session.write(.full) {
        try session.connection.execute("UPDATE items SET type = 99 WHERE key = 'a'")
        session.transaction.changes.recordClearingOfAll()
      }
    }
    #expect(try proxy.allKeys(inCollection: "full") == ["a", "b"])
    #expect(try proxy.numberOfKeys(inCollection: "full") == 2)
    #expect(throws: CofferError.self) { try proxy.objects(inCollection: "full", as: Int.self) }
  }
}
