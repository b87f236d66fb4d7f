import CofferCompat
import CofferCrypto
import Dispatch
import Testing

@testable import Coffer

@Suite("The filters of a connection proxy") struct ProxyFilterTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }

  init() throws {
    fixture = try ProxyFixture()
  }

  /// Which of the collections `a` and `b` show something for the key `k`, by all ways to read.
  private func visible() throws -> [String] {
    try ["a", "b"].filter { collection in
      let isThere = try proxy.hasObject(forKey: "k", inCollection: collection)
      #expect(try (proxy.value(forKey: "k", inCollection: collection) != nil) == isThere)
      #expect(try (proxy.metadata(forKey: "k", inCollection: collection, as: Value.self) != nil) == isThere)
      #expect(
        try (proxy.row(forKey: "k", inCollection: collection, as: Value.self, metadata: Value.self) != nil) == isThere)
      return isThere
    }
  }

  private func setBoth(_ value: Int) throws {
    for collection in ["a", "b"] {
      try proxy.setObject(value, forKey: "k", inCollection: collection, withMetadata: value)
    }
  }

  private func committed(inCollection collection: String) throws -> Int? {
    try fixture.committed("k", inCollection: collection)
  }

  // MARK: 4.7

  @Test("4.7 hides flushed rows by whitelist, blacklist and closure; a nil list allows nothing or everything")
  func kinds() throws {
    try setBoth(1)
    try proxy.flushAndWait()
    let filters: [(CollectionFilter?, [String])] = [
      (nil, ["a", "b"]), (.only(["a", "x"]), ["a"]), (.only([]), []), (.whitelist(nil), []),
      (.except(["a", "x"]), ["b"]), (.except([]), ["a", "b"]), (.blacklist(nil), ["a", "b"]),
      (CollectionFilter { $0 == "b" }, ["b"]), (nil, ["a", "b"]),
    ]
    for (filter, expected) in filters {
      proxy.fetchedCollectionsFilter = filter
      #expect((proxy.fetchedCollectionsFilter == nil) == (filter == nil))
      #expect(try visible() == expected)
    }
    // Names compare by their bytes: one composed, one not.
    #expect(!CollectionFilter.only(["\u{E9}"]).allows("e\u{301}"))
    #expect(CollectionFilter.except(["\u{E9}"]).allows("e\u{301}"))
  }

  @Test("4.7 shows pending values of filtered collections until they are committed, and filters no writes")
  func pendingStaysVisible() throws {
    try setBoth(1)
    try proxy.flushAndWait()
    proxy.fetchedCollectionsFilter = .except(["a"])
    try fixture.duringFlush(of: { try proxy.setObject(2, forKey: "k", inCollection: "a", withMetadata: 2) }) {
      let seen = try visible()
      #expect(seen == ["a", "b"])
    }
    try proxy.flushAndWait()
    #expect(try visible() == ["b"])
    #expect(try committed(inCollection: "a") == 2)
    // A replacement of a hidden row is not visible, but still applied.
    try fixture.withWriteLockHeld {
      try proxy.replaceObject(3, forKey: "k", inCollection: "a")
      #expect(try visible() == ["b"])
    }
    try proxy.flushAndWait()
    #expect(try committed(inCollection: "a") == 3)
    proxy.fetchedCollectionsFilter = nil
    #expect(try visible() == ["a", "b"])
  }

  @Test("4.7 sets the filter and resets atomically; what a flush has taken is written, the rest is not")
  func abortAndReset() throws {
    try proxy.setObject(1, forKey: "k", inCollection: "b", withMetadata: 1, durability: .committed)
    try fixture.duringFlush(of: { try proxy.setObject(1, forKey: "k", inCollection: "a", withMetadata: 1) }) {
      try setBoth(2)
      try proxy.abortAndReset(.whitelist(nil))
      // Being committed, it is readable throughout.
      #expect(try visible() == ["a"])
      #expect(try proxy.object(forKey: "k", inCollection: "a") == 1)
    }
    try proxy.flushAndWait()
    #expect(try visible() == [])
    #expect(try committed(inCollection: "a") == 1)
    #expect(try committed(inCollection: "b") == 1)
    try proxy.abortAndReset(nil)
    #expect(try visible() == ["a", "b"])
    try proxy.close()
    #expect(throws: CofferError.closed) { try proxy.abortAndReset(nil) }
  }

  @Test("4.7 clears a collection manually on the proxy's own connection: what is set after the call stays")
  func recipeByHand() throws {
    try setBoth(1)
    try proxy.flushAndWait()
    let isCleared = DispatchSemaphore(value: 0)
    try fixture.withWriteLockHeld {
      try setBoth(2)
      try proxy.abortAndReset(.except(["a"]))
      proxy.writer.asyncReadWrite({ try $0.removeAllObjects(inCollection: "a") }) { [proxy] _ in
        proxy.fetchedCollectionsFilter = nil
        isCleared.signal()
      }
      #expect(try visible() == ["b"])
      try proxy.setObject(3, forKey: "k", inCollection: "a", withMetadata: 3)
      #expect(try visible() == ["a", "b"])
    }
    isCleared.wait()
    #expect(try proxy.object(forKey: "k", inCollection: "a") == 3)
    try proxy.flushAndWait()
    #expect(try committed(inCollection: "a") == 3)
    #expect(try committed(inCollection: "b") == 1)
  }

  @Test("4.7 removes a whole collection, pending and committed; what is set after the call stays")
  func removeAll() throws {
    try setBoth(1)
    try proxy.setObject(1, forKey: "old", inCollection: "a", durability: .committed)
    let before = try fixture.commitNumber()
    try fixture.withWriteLockHeld {
      try setBoth(2)
      try proxy.setObject(2, forKey: "never", inCollection: "a")
      try proxy.removeAllObjects(inCollection: "a")
      #expect(try visible() == ["b"])
      try proxy.replaceObject(3, forKey: "old", inCollection: "a")
      #expect(try !proxy.hasObject(forKey: "old", inCollection: "a"))
      try proxy.setObject(3, forKey: "k", inCollection: "a", withMetadata: 3)
      #expect(try visible() == ["a", "b"])
      #expect(try committed(inCollection: "a") == 1)
    }
    try proxy.flushAndWait()
    #expect(try proxy.object(forKey: "k", inCollection: "a") == 3)
    #expect(try committed(inCollection: "a") == 3)
    #expect(try committed(inCollection: "b") == 2)
    #expect(try fixture.reader.read { try $0.allKeys(inCollection: "a") } == ["k"])
    // One step, with no moment in which the collection is empty to others.
    #expect(try fixture.commitNumber() == before + 1)
    try proxy.removeAllObjects(inCollection: "a", durability: .committed)
    #expect(try fixture.reader.read { try $0.allCollections() } == ["b"])
    #expect(proxy.pendingChangeCount == 0)
  }

  @Test(
    "4.7 removes everything during a flush of the same collection, and keeps what is set before and after its own flush"
  )
  func removeAllDuringFlush() throws {
    try fixture.duringFlush(of: { try proxy.setObject(1, forKey: "k", inCollection: "a", withMetadata: 1) }) {
      try proxy.removeAllObjects(inCollection: "a")
      #expect(try visible() == [])
    }
    try proxy.flushAndWait()
    #expect(try visible() == [])
    #expect(try committed(inCollection: "a") == nil)

    try setBoth(1)
    try proxy.flushAndWait()
    try fixture.duringFlush(of: { try proxy.removeAllObjects(inCollection: "a") }) {
      #expect(try visible() == ["b"])
      try proxy.setObject(2, forKey: "k", inCollection: "a", withMetadata: 2)
      #expect(try visible() == ["a", "b"])
    }
    #expect(try proxy.object(forKey: "k", inCollection: "a") == 2)
    try proxy.flushAndWait()
    #expect(try committed(inCollection: "a") == 2)
  }

  @Test("4.6, 4.7 discards a removal of everything by a reset, and keeps it together with what failed before it")
  func resetOfRemoveAll() throws {
    let proxy = try ConnectionProxy(database: fixture.store.open(busyTimeout: .zero))
    try self.proxy.setObject(1, forKey: "k", inCollection: "a", durability: .committed)
    try fixture.withWriteLockHeld {
      try proxy.removeAllObjects(inCollection: "a")
      #expect(proxy.pendingChangeCount == 1)
      try proxy.resetObject(forKey: "k", inCollection: "a")
      #expect(try !proxy.hasObject(forKey: "k", inCollection: "a"))
      try proxy.reset()
      #expect(try proxy.hasObject(forKey: "k", inCollection: "a"))
      try proxy.setObject(2, forKey: "failed", inCollection: "a")
      #expect(throws: CofferError.busy) { try proxy.flushAndWait() }
      try proxy.removeAllObjects(inCollection: "a")
      try proxy.setObject(3, forKey: "kept", inCollection: "a")
      #expect(try !proxy.hasObject(forKey: "failed", inCollection: "a"))
    }
    try proxy.close()
    #expect(try fixture.reader.read { try $0.allKeys(inCollection: "a") } == ["kept"])
  }

  // MARK: 4.17

  @Test("4.17 refuses every kind of write to a collection that its filter doesn't allow, and permits others")
  func writeFilter() throws {
    try setBoth(1)
    try proxy.flushAndWait()
    proxy.writtenCollectionsFilter = .only(["b"])
    let asked = Lock(false)
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      asked.withLock { $0 = true }
      return value
    }
    fixture.database.setRules(rules, forCollection: "a")
    let refusal = CofferError.collectionNotAllowed(collection: "a")
    #expect(throws: refusal) { try proxy.setObject(2, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.setObject(2, forKey: "k", inCollection: "a", withMetadata: 2) }
    #expect(throws: refusal) { try proxy.setObject(nil, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.setObject(Int?.none, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.replaceObject(2, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.replaceObject(Int?.none, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.replaceMetadata(2, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.replaceMetadata(nil, forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.removeObject(forKey: "k", inCollection: "a") }
    #expect(throws: refusal) { try proxy.removeObjects(forKeys: ["k"], inCollection: "a") }
    #expect(throws: refusal) { try proxy.removeAllObjects(inCollection: "a") }
    #expect(refusal.description.contains("\"a\""))
    #expect(proxy.pendingChangeCount == 0)
    #expect(!asked.withLock { $0 })
    #expect(try visible() == ["a", "b"])
    try proxy.setObject(2, forKey: "k", inCollection: "b", durability: .committed)
    #expect(try committed(inCollection: "b") == 2)
    proxy.writtenCollectionsFilter = nil
    try proxy.setObject(2, forKey: "k", inCollection: "a", durability: .committed)
    #expect(try committed(inCollection: "a") == 2)
  }

  /// Uses a proxy when it goes.
  private final class LastWord: Sendable {
    let proxy: ConnectionProxy

    init(_ proxy: ConnectionProxy) { self.proxy = proxy }

    deinit { _ = try? proxy.hasObject(forKey: "k", inCollection: "a") }
  }

  private func filter() -> CollectionFilter {
    let word = LastWord(proxy)
    return CollectionFilter { _ in withExtendedLifetime(word) { true } }
  }

  @Test("What a former filter has captured may use the proxy as it goes")
  func released() throws {
    proxy.fetchedCollectionsFilter = filter()
    proxy.fetchedCollectionsFilter = nil
    proxy.writtenCollectionsFilter = filter()
    proxy.writtenCollectionsFilter = nil
    proxy.fetchedCollectionsFilter = filter()
    try proxy.discardPendingChanges(filter: nil)
  }
}
