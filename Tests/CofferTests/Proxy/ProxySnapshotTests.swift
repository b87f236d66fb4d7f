import Foundation
import Testing

@testable import Coffer

@Suite("Several collections of a proxy") struct ProxySnapshotTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }

  init() throws {
    fixture = try ProxyFixture()
  }

  /// The items as `collection/key=number`; an error instead of a number that cannot be read.
  private func lines(_ snapshot: ConnectionProxy.Snapshot) -> [String] {
    snapshot.items.map { item in
      do {
        return "\(item.collection)/\(item.key)=\(try item.object(as: Int.self))"
      } catch CofferError.notDecodable {
        return "\(item.collection)/\(item.key) is another"
      } catch {
        return "\(item.collection)/\(item.key) cannot be read"
      }
    }
  }

  @Test("are read with committed and pending items, in order, each once")
  func pending() throws {
    try fixture.other.readWrite { transaction in
      for collection in ["a", "b", "c", "cleared"] {
        for key in ["x", "y"] { try transaction.setObject(1, forKey: key, inCollection: collection) }
      }
      try transaction.setObject(1, forKey: "x", inCollection: "b", withMetadata: "meta")
    }
    try fixture.withWriteLockHeld {
      try proxy.setObject(2, forKey: "z", inCollection: "a")
      try proxy.setObject(3, forKey: "y", inCollection: "b")
      try proxy.removeObject(forKey: "x", inCollection: "a")
      try proxy.removeAllObjects(inCollection: "cleared")
      let snapshot = try proxy.snapshot(ofCollections: ["b", "a", "missing", "cleared", "b"])
      #expect(lines(snapshot) == ["a/y=1", "a/z=2", "b/x=1", "b/y=3"])
      #expect(try snapshot.item(forKey: "y", inCollection: "b")?.object(as: Int.self) == 3)
      #expect(try snapshot.item(forKey: "x", inCollection: "b")?.metadata(as: String.self) == "meta")
      #expect(snapshot.item(forKey: "x", inCollection: "a") == nil)
      #expect(snapshot.item(forKey: "zz", inCollection: "b") == nil)
    }
    #expect(try proxy.snapshot(ofCollections: []).items.isEmpty)
    proxy.fetchedCollectionsFilter = .except(["a"])
    try proxy.flushAndWait()
    #expect(lines(try proxy.snapshot(ofCollections: ["a", "b"])) == ["b/x=1", "b/y=3"])
  }

  @Test("are read consistently: a change of both is seen in both, or in neither")
  func oneMoment() throws {
    func numbers() throws -> [Int] {
      try proxy.snapshot(ofCollections: ["a", "b"]).items.map { try $0.object(as: Int.self) }
    }
    // Commits of another connection, for as long as it takes to see the last of them.
    let (fixture, count) = (self.fixture, 200)
    let isDone = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      for number in 1...count {
        try? fixture.other.readWrite { transaction in
          for collection in ["a", "b"] { try transaction.setObject(number, forKey: "k", inCollection: collection) }
        }
      }
      isDone.signal()
    }
    var seen: [Int] = []
    while isDone.wait(timeout: .now()) == .timedOut {
      seen = try numbers()
      #expect(seen.first == seen.last)
    }
    #expect(try numbers() == [count, count])
    // While a flush waits before its commit, its changes are visible in both.
    func setBoth() throws {
      try proxy.performBatch { batch in
        for collection in ["a", "b"] { try batch.setObject(2, forKey: "k", inCollection: collection) }
      }
    }
    try self.fixture.duringFlush(of: setBoth) {
      let shown = try numbers()
      #expect(shown == [2, 2])
    }
    try proxy.flushAndWait()
    #expect(try numbers() == [2, 2])
  }

  @Test("have errors by key: an unreadable item does not block the rest")
  func errors() throws {
    try fixture.other.readWrite { transaction in
      for key in ["good", "newer", "replaced", "text"] { try transaction.setObject(1, forKey: key, inCollection: "a") }
      try transaction.setObject("1", forKey: "text", inCollection: "a")
    }
    try fixture.other.perform { session in
      try session.write(.full) {
        try session.connection.execute("UPDATE items SET type = 99 WHERE key = 'newer' OR key = 'replaced'")
        session.transaction.changes.recordClearingOfAll()
      }
    }
    try fixture.withWriteLockHeld {
      try proxy.setObject(2, forKey: "replaced", inCollection: "a")
      let expected = ["a/good=1", "a/newer cannot be read", "a/replaced=2", "a/text is another"]
      #expect(lines(try proxy.snapshot(ofCollections: ["a"])) == expected)
    }
    #expect(throws: CofferError.self) { try proxy.objects(inCollection: "a", as: Value.self) }
  }

  @Test("have the values of a sealed collection while the vault is open, and an error for each while it is locked")
  func sealed() throws {
    let sealed = try SealedFixture()
    let proxy = try ConnectionProxy(database: sealed.database)
    try sealed.set(7)
    try proxy.setObject(1, forKey: "plain", inCollection: "a", durability: .synced)
    let snapshot = try proxy.snapshot(ofCollections: ["a", "tokens"])
    #expect(lines(snapshot) == ["a/plain=1", "tokens/k=7"])
    sealed.vault.lock()
    #expect(lines(try proxy.snapshot(ofCollections: ["a", "tokens"])) == ["a/plain=1", "tokens/k cannot be read"])
  }

  private func clear(_ collections: String...) throws {
    try fixture.other.readWrite { transaction in
      for collection in collections { try transaction.removeAllObjects(inCollection: collection) }
    }
  }

  @Test("report their changes in one stream, changes made together as one event")
  func changes() async throws {
    var changes = try proxy.changes(inCollections: ["a", "b"]).makeAsyncIterator()
    try proxy.setObject(1, forKey: "k", inCollection: "c")
    try proxy.performBatch { batch in
      for collection in ["c", "b", "a"] { try batch.setObject(1, forKey: "k", inCollection: collection) }
    }
    let own = try #require(await changes.next())
    #expect(own.changes.map { "\($0.collection)/\($0.key)" } == ["a/k", "b/k"])
    try proxy.flushAndWait()
    try clear("b", "c")
    #expect(await changes.next()?.scope == .collections(["b"]))
    var none = try proxy.changes(inCollections: []).makeAsyncIterator()
    try proxy.setObject(2, forKey: "k", inCollection: "a")
    try await proxy.close()
    #expect(await none.next() == nil)
  }
}
