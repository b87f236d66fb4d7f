import CofferCompat
import CofferCrypto
import Dispatch
import TestSupport
import Testing

@testable import Coffer

@Suite("The changes that a proxy announces") struct ProxyStreamTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }

  init() throws {
    fixture = try ProxyFixture()
  }

  /// What the next event says, as lines `origin kind collection/key old>new`.
  private func next(_ iterator: inout ConnectionProxy.Changes.Iterator) async throws -> [String] {
    guard let event = await iterator.next() else { return ["end"] }
    let origin =
      switch event.origin {
      case .proxy: "own"
      case .connection: "connection"
      case .elsewhere: "elsewhere"
      case .thisDatabase: "this database"
      case .several: "several"
      }
    return try event.changes.map { change in
      let (old, new) = try (change.oldObject(as: Value.self), change.object(as: Value.self))
      func text(_ value: Value?) -> String {
        switch value {
        case .int(let number): "\(number)"
        case .string(let text): text
        default: "-"
        }
      }
      return "\(origin) \(change.kind) \(change.collection)/\(change.key) \(text(old))>\(text(new))"
    } + event.scope.wholeCollections.map { "\(origin) whole \($0)" }
      + (event.scope == .everything ? ["\(origin) everything"] : [])
  }

  @Test("4.13 announces its own changes when visible, with old and new values, and not again when committed")
  func ownChanges() async throws {
    var changes = try proxy.changes().makeAsyncIterator()
    try proxy.setObject(1, forKey: "k")
    #expect(try await next(&changes) == ["own inserted /k ->1"])
    try proxy.flushAndWait()
    try proxy.setObject(2, forKey: "k")
    #expect(try await next(&changes) == ["own updated /k 1>2"])
    try await proxy.replaceObject(3, forKey: "k", durability: .synced)
    #expect(try await next(&changes) == ["own updated /k 2>3"])
    try proxy.removeObject(forKey: "k")
    #expect(try await next(&changes) == ["own removed /k 3>-"])
    try proxy.flushAndWait()
    try await proxy.update("k", as: Int.self) { _ in 7 }
    #expect(try await next(&changes) == ["own inserted /k ->7"])
    #expect(try await proxy.compareAndSet("k", expected: 7, new: 8))
    #expect(try await next(&changes) == ["own updated /k 7>8"])
    try proxy.removeAllObjects(inCollection: "")
    #expect(try await next(&changes) == ["own whole "])
  }

  @Test("4.13 announces the changes of a key or a prefix without a collection in the default collection")
  func changesInDefaultCollection() async throws {
    var key = try proxy.changes(key: "a.1").makeAsyncIterator()
    var prefix = try proxy.changes(prefix: "a.").makeAsyncIterator()
    try proxy.setObject(1, forKey: "a.1", inCollection: "other")
    try proxy.setObject(1, forKey: "b")
    try proxy.setObject(1, forKey: "a.1")
    #expect(try await next(&key) == ["own inserted /a.1 ->1"])
    #expect(try await next(&prefix) == ["own inserted /a.1 ->1"])
  }

  @Test("4.13 announces nothing committed before, whether the proxy has read, or only written")
  func earlierChanges() async throws {
    let reading = try ConnectionProxy(database: fixture.database)
    _ = try reading.hasObject(forKey: "k")
    try await proxy.setObject(1, forKey: "own", durability: .committed)
    try await fixture.other.readWrite { try $0.setObject(2, forKey: "earlier") }
    for proxy in [proxy, reading] {
      var changes = try proxy.changes().makeAsyncIterator()
      try proxy.setObject(3, forKey: "later")
      #expect(try await next(&changes) == ["own inserted /later ->3"])
      try await proxy.removeObject(forKey: "later", durability: .committed)
    }
  }

  @Test("4.13, 4.11 announces nothing if nothing changes")
  func noChanges() async throws {
    try await proxy.setObject(1, forKey: "k", durability: .committed)
    var changes = try proxy.changes().makeAsyncIterator()
    try proxy.setObject(1, forKey: "k")
    #expect(proxy.pendingChangeCount == 0)
    try proxy.removeObject(forKey: "absent")
    try proxy.replaceObject(1, forKey: "absent")
    try fixture.other.readWriteNow { try $0.setObject(1, forKey: "k") }
    try proxy.setObject(2, forKey: "last")
    #expect(try await next(&changes) == ["own inserted /last ->2"])
  }

  @Test("4.13 announces the commits of other connections and processes by key")
  func foreignChanges() async throws {
    try await proxy.setObject(1, forKey: "k", durability: .committed)
    var changes = try proxy.changes(inCollection: "").makeAsyncIterator()
    try fixture.other.readWriteNow { transaction in
      try transaction.setObject(2, forKey: "k")
      try transaction.setObject(3, forKey: "new")
    }
    #expect(try await next(&changes) == ["connection updated /k 1>2", "connection inserted /new ->3"])
    try proxy.writer.readWriteNow { try $0.removeObject(forKey: "new") }
    #expect(try await next(&changes) == ["connection removed /new 3>-"])
    #expect(try fixture.store.worker("set", "k", "theirs").status == 0)
    #expect(try await next(&changes) == ["elsewhere updated /k 2>theirs"])
    try fixture.other.readWriteNow { try $0.touchObject(forKey: "k") }
    #expect(try await next(&changes) == ["connection touched /k theirs>theirs"])
    try fixture.other.readWriteNow { try $0.removeAllObjects(inCollection: "") }
    #expect(try await next(&changes) == ["connection whole "])
    try fixture.other.readWriteNow { try $0.setObject(4, forKey: "k") }
    #expect(try await next(&changes) == ["connection inserted /k ->4"])
  }

  @Test("4.13 hides commits of others behind a pending change")
  func hiddenChanges() async throws {
    var changes = try proxy.changes().makeAsyncIterator()
    try fixture.withWriteLockHeld { try proxy.setObject(1, forKey: "k") }
    #expect(try await next(&changes) == ["own inserted /k ->1"])
    try proxy.flushAndWait()
    try await proxy.flush()
    let manual = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    var theirs = try manual.changes().makeAsyncIterator()
    try manual.setObject(5, forKey: "k")
    #expect(try await next(&theirs) == ["own updated /k 1>5"])
    try fixture.other.readWriteNow { transaction in
      try transaction.setObject(2, forKey: "k")
      try transaction.setObject(2, forKey: "seen")
    }
    #expect(try await next(&theirs) == ["connection inserted /seen ->2"])
  }

  @Test("4.13 announces the values that a reset brings back")
  func resets() async throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    try await proxy.setObject(1, forKey: "a", durability: .committed)
    var changes = try proxy.changes().makeAsyncIterator()
    try proxy.setObject(2, forKey: "a")
    #expect(try await next(&changes) == ["own updated /a 1>2"])
    try proxy.setObject(3, forKey: "b")
    #expect(try await next(&changes) == ["own inserted /b ->3"])
    try proxy.discardPendingChanges(forKey: "a")
    #expect(try await next(&changes) == ["own updated /a 2>1"])
    try proxy.discardPendingChanges()
    #expect(try await next(&changes) == ["own removed /b 3>-"])
  }

  @Test("4.13 splits very many changes into several events, without splitting a batch")
  func manyChanges() async throws {
    var changes = try proxy.changes().makeAsyncIterator()
    let mayTell = DispatchSemaphore(value: 0)
    proxy.state.listeners.enqueue { mayTell.wait() }
    let count = ProxyState.itemsPerEvent
    for number in 1..<count { try proxy.setObject(number, forKey: "\(number)") }
    try proxy.performBatch { batch in
      for key in ["a", "b", "c"] { try batch.setObject(0, forKey: key) }
    }
    try proxy.setObject(0, forKey: "d")
    #expect(proxy.state.lock.withShared { proxy.state.announcer.unannounced.map(\.items.count) } == [count + 2, 1])
    mayTell.signal()
    var keys: Set<String> = []
    while keys.count < count + 3, let event = await changes.next() { keys.formUnion(event.changes.map(\.key)) }
    #expect(keys.count == count + 3)
  }

  @Test("4.13 makes one event of a batch, and filters by collection, key and prefix")
  func batchesAndFilters() async throws {
    var all = try proxy.changes().makeAsyncIterator()
    var collection = try proxy.changes(inCollection: "c").makeAsyncIterator()
    var key = try proxy.changes(inCollection: "c", key: "a").makeAsyncIterator()
    var prefix = try proxy.changes(inCollection: "c", prefix: "b").makeAsyncIterator()
    try proxy.performBatch { batch in
      for (number, name) in ["a", "b1", "b2"].enumerated() {
        try batch.setObject(number, forKey: name, inCollection: "c")
      }
      try batch.setObject(9, forKey: "a", inCollection: "d")
    }
    let (a, b1, b2) = ("own inserted c/a ->0", "own inserted c/b1 ->1", "own inserted c/b2 ->2")
    #expect(try await next(&all) == [a, b1, b2, "own inserted d/a ->9"])
    #expect(try await next(&collection) == [a, b1, b2])
    #expect(try await next(&key) == [a])
    #expect(try await next(&prefix) == [b1, b2])
    struct Refusal: Error {}
    #expect(throws: Refusal.self) {
      try proxy.performBatch { batch in
        try batch.setObject(1, forKey: "never")
        throw Refusal()
      }
    }
    try proxy.removeObjects(forKeys: ["b1", "b2", "absent"], inCollection: "c")
    #expect(try await next(&prefix) == ["own removed c/b1 1>-", "own removed c/b2 2>-"])
    #expect(try !proxy.hasObject(forKey: "never"))
  }

  @Test("4.13 loses no key when a consumer is slow, and ends with the proxy")
  func slowConsumer() async throws {
    let store = try TemporaryStore()
    let proxy = try ConnectionProxy(database: store.open())
    let changes = try proxy.changes()
    for number in 0..<300 { try proxy.setObject(number, forKey: "\(number % 150)") }
    try await proxy.close()
    var keys = Set<String>()
    for await event in changes { keys.formUnion(event.changes.map(\.key)) }
    #expect(keys.count == 150)
    #expect(throws: CofferError.closed) { try proxy.changes() }
  }
}

extension Connection {
  /// The blocking form, in asynchronous code.
  fileprivate func readWriteNow(_ body: (borrowing ReadWriteTransaction) throws -> Void) throws {
    try readWrite(body)
  }
}
