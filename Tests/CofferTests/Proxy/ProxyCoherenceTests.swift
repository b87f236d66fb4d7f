import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import Coffer

@Suite("A proxy beside other writers") struct ProxyCoherenceTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }

  init() throws {
    fixture = try ProxyFixture()
  }

  private func setElsewhere(_ value: Int?, _ key: String = "k", inCollection collection: String = "") throws {
    try fixture.other.readWrite { try $0.setObject(value, forKey: key, inCollection: collection) }
  }

  private func visible(_ key: String = "k", inCollection collection: String = "") throws -> Int? {
    try proxy.object(forKey: key, inCollection: collection)
  }

  // MARK: 4.14

  @Test("4.14 sees another connection's commit with the next read")
  func seesOthers() throws {
    #expect(try visible() == nil)
    for number in 1...20 {
      try setElsewhere(number)
      #expect(try visible() == number)
      // From memory.
      #expect(try visible() == number)
    }
    try setElsewhere(nil)
    #expect(try visible() == nil)
  }

  @Test("4.14 knows what it has flushed before its first read, and no other committed values")
  func flushesFirst() throws {
    try setElsewhere(1, "theirs")
    try setElsewhere(1, "both")
    try proxy.setObject(2, forKey: "ours")
    try proxy.setObject(2, forKey: "both")
    try proxy.flushAndWait()
    #expect(try ["ours", "both"].allSatisfy { try item($0).isCommittedKnown })
    #expect(try visible("theirs") == 1 && visible("ours") == 2 && visible("both") == 2)
    try setElsewhere(3, "ours")
    #expect(try visible("ours") == 3 && visible("both") == 2)
  }

  private func item(_ key: String) throws -> ProxyItem {
    try #require(proxy.state.lock.withShared { proxy.state.items.find(key, "")?.object })
  }

  @Test("4.14 sees another process's commit with the next read")
  func seesOtherProcesses() throws {
    try proxy.setObject(1, forKey: "k", durability: .committed)
    #expect(try visible() == 1)
    let child = try fixture.store.worker("set", "k", "2")
    #expect(child.status == 0)
    #expect(try proxy.value(forKey: "k") == .string("2"))
  }

  @Test("4.14 answers from memory what it has read, without reading the store")
  func cachedReads() throws {
    try proxy.setObject(7, forKey: "k", durability: .committed)
    try proxy.setObject("text", forKey: "s", durability: .committed)
    #expect(try visible() == 7)
    let text: String? = try proxy.object(forKey: "s")
    #expect(text == "text")
    // Calls to the reader wait forever.
    try proxy.state.reader.perform { _ in
      let (seen, text, isThere) = try (visible(), proxy.value(forKey: "s"), proxy.hasObject(forKey: "k"))
      #expect(seen == 7)
      #expect(text == .string("text"))
      #expect(isThere)
      #expect(throws: CofferError.nestedTransaction) { try proxy.hasObject(forKey: "never asked for") }
    }
  }

  @Test("4.14 knows after some reads which keys a small collection has and lacks")
  func wholeCollections() throws {
    for number in 0..<50 { try proxy.setObject(number, forKey: "\(number)", inCollection: "c") }
    try proxy.flushAndWait()
    let other = try ConnectionProxy(database: fixture.database)
    for number in 0..<10 {
      let object: Int? = try other.object(forKey: "\(number)", inCollection: "c")
      #expect(object == number)
    }
    try other.state.reader.perform { _ in
      for number in 10..<50 {
        let object: Int? = try other.object(forKey: "\(number)", inCollection: "c")
        #expect(object == number)
      }
      let isThere = try other.hasObject(forKey: "absent", inCollection: "c")
      #expect(!isThere)
    }
    // A key that was known to be absent, made by others.
    try setElsewhere(1, "absent", inCollection: "c")
    let object: Int? = try other.object(forKey: "absent", inCollection: "c")
    #expect(object == 1)
    try fixture.other.readWrite { try $0.removeAllObjects(inCollection: "c") }
    #expect(try !other.hasObject(forKey: "absent", inCollection: "c"))
    #expect(try !other.hasObject(forKey: "1", inCollection: "c"))
    try setElsewhere(2, "1", inCollection: "c")
    let again: Int? = try other.object(forKey: "1", inCollection: "c")
    #expect(again == 2)
  }

  @Test("4.14 stays within its limit, and reads evicted items again")
  func limit() throws {
    try fixture.other.readWrite { transaction in
      for number in 0..<3000 {
        try transaction.setObject(String(repeating: "x", count: 100), forKey: "\(number)", inCollection: "c")
      }
    }
    proxy.cacheByteLimit = 100_000
    for round in 0..<2 {
      for number in 0..<3000 {
        let object: String? = try proxy.object(forKey: "\(number)", inCollection: "c")
        #expect(object?.count == 100, "in round \(round)")
        #expect(proxy.state.items.byteCount <= 100_000)
      }
    }
    #expect(proxy.state.items.count < 400)
    proxy.cacheByteLimit = 0
    try setElsewhere(5)
    #expect(try visible() == 5)
    try proxy.setObject(6, forKey: "k")
    #expect(try visible() == 6)
    try proxy.flushAndWait()
    #expect(try visible() == 6)
  }

  @Test("4.14 counts no evicted item, even if several threads read what others evict")
  func limitForSeveral() throws {
    try fixture.other.readWrite { transaction in
      for number in 0..<10 {
        try transaction.setObject(String(repeating: "x", count: 1000), forKey: "\(number)", inCollection: "c")
      }
    }
    let proxy = proxy
    proxy.cacheByteLimit = 0
    DispatchQueue.concurrentPerform(iterations: 3) { thread in
      for round in 0..<1000 {
        #expect(throws: Never.self) {
          let text: String? = try proxy.object(forKey: "\((thread + round) % 10)", inCollection: "c")
          #expect(text?.count == 1000)
        }
      }
    }
    proxy.cacheByteLimit = 0
    #expect(proxy.state.items.count == 0)
    #expect(proxy.state.items.byteCount == 0)
  }

  @Test("4.14 evicts many items in steps, so that no caller waits for all of them")
  func limitInSteps() throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    for number in 0..<1000 { try proxy.setObject(number, forKey: "\(number)", inCollection: "c") }
    proxy.cacheByteLimit = 10_000
    #expect(proxy.state.items.count == 1000, "what is pending stays")
    try proxy.discardPendingChanges()
    var counts = [1000]
    var isMore = true
    while isMore {
      var leftovers = ItemTable.Leftovers()
      isMore = proxy.state.lock.withExclusive { proxy.state.sweepSome(into: &leftovers) }
      let evictedCount = counts[counts.count - 1] - proxy.state.items.count
      #expect(leftovers.items.count == evictedCount, "they are freed without the lock")
      counts.append(proxy.state.items.count)
    }
    #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 - $1 <= ItemTable.slotsPerStep })
    #expect(counts.count > 4)
    #expect(proxy.state.items.byteCount <= 10_000 && proxy.state.items.count > 20)
  }

  @Test(
    "4.14 settles a committed flush in steps, so that no caller waits for all of it, and reads it meanwhile",
    arguments: [false, true])
  func settlingInSteps(isSeenBefore: Bool) throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    for number in 0..<1000 { try proxy.setObject(number, forKey: "\(number)", inCollection: "c") }
    if isSeenBefore {
      proxy.state.hooks.onCommit = { [unowned proxy] in
        let read = try? proxy.object(forKey: "0", inCollection: "c", as: Int.self)
        #expect(read == 0 && proxy.pendingChangeCount == 0)
      }
    }
    let counts = Lock<[Int]>([])
    proxy.state.hooks.onSettling = { [unowned proxy] in
      #expect(proxy.pendingChangeCount == 0)
      var isMore = true
      while isMore {
        let count = proxy.state.lock.withExclusive { () -> Int in
          var count = 0
          proxy.state.items.forEach { if $0.hasPending { count += 1 } }
          isMore = proxy.state.settleSome()
          return count
        }
        counts.withLock { $0.append(count) }
        proxy.cacheByteLimit = 0
        let read = try? proxy.object(forKey: "999", inCollection: "c", as: Int.self)
        #expect(read == 999)
      }
    }
    try proxy.flushAndWait()
    let seen = counts.withLock { $0 }
    #expect(seen.first == 1000 && seen.last == 0)
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 - $1 <= ProxyState.itemsPerStep })
    #expect(proxy.state.items.count == 0, "what could not go while it was settled goes at the end")
  }

  @Test("4.2, 4.6 writes what a flush has taken, despite concurrent sets, resets and removals")
  func changesDuringFlush() throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    let last = 2 * ProxyState.itemsPerStep
    let isFirst = Atomic(true)
    var rules = CollectionRules()
    rules.objectPostSanitizer = { [weak proxy] _, _, _ in
      // At the first key, when the flush has not read the last ones yet.
      guard isFirst.exchange(false, ordering: .relaxed), let proxy else { return }
      #expect(throws: Never.self) {
        try proxy.setObject(-1, forKey: "\(last)", inCollection: "c")
        try proxy.discardPendingChanges(forKey: "\(last - 1)", inCollection: "c")
        try proxy.removeObject(forKey: "\(last - 2)", inCollection: "c")
      }
    }
    fixture.database.setRules(rules, forCollection: "c")
    for number in 0...last { try proxy.setObject(number, forKey: "\(number)", inCollection: "c") }
    try proxy.flushAndWait()
    let committed = try fixture.other.read { transaction in
      try (last - 2...last).map { try transaction.object(forKey: "\($0)", inCollection: "c") as Int? }
    }
    #expect(committed == [last - 2, last - 1, last])
    #expect(proxy.pendingChangeCount == 2)
    #expect(try proxy.object(forKey: "\(last)", inCollection: "c") == -1)
    #expect(try proxy.object(forKey: "\(last - 1)", inCollection: "c") == last - 1)
    #expect(try proxy.object(forKey: "\(last - 2)", inCollection: "c") == Int?.none)
    try proxy.flushAndWait()
    try fixture.other.read { transaction in
      try #expect(transaction.object(forKey: "\(last)", inCollection: "c") == -1)
      try #expect(!transaction.hasObject(forKey: "\(last - 2)", inCollection: "c"))
    }
  }

  @Test("4.14 keeps what a flush is writing, despite evictions")
  func limitDuringFlush() throws {
    let counts = Lock<[Int]>([])
    var rules = CollectionRules()
    rules.objectPostSanitizer = { [weak proxy] _, _, _ in
      guard let proxy else { return }
      proxy.cacheByteLimit = 0
      counts.withLock { $0.append(proxy.state.lock.withShared { proxy.state.items.count }) }
    }
    fixture.database.setRules(rules, forCollection: "c")
    let text = { String(repeating: "x", count: $0) }
    try fixture.withWriteLockHeld {
      for number in 0..<100 { try proxy.setObject(text(number), forKey: "\(number)", inCollection: "c") }
    }
    try proxy.flushAndWait()
    #expect(counts.withLock { $0 } == Array(repeating: 100, count: 100))
    #expect(proxy.state.items.count == 0)
    for number in 0..<100 {
      let object: String? = try proxy.object(forKey: "\(number)", inCollection: "c")
      #expect(object == text(number))
    }
  }

  @Test("4.14 drops everything if the change log doesn't reach back far enough, or lists no keys")
  func farBehind() throws {
    try setElsewhere(1)
    #expect(try visible() == 1)
    try fixture.other.readWrite { transaction in
      for number in 0..<1500 { try transaction.setObject(number, forKey: "\(number)") }
      try transaction.setObject(2, forKey: "k")
    }
    #expect(try visible() == 2)
    // As if many commits had been made since.
    try fixture.other.perform { session in
      try session.write(.normal) {
        try session.connection.execute("DELETE FROM changes")
        try session.connection.execute(
          "INSERT INTO changes VALUES (20000, randomblob(16), 0, 0, NULL, 0, x'', NULL, randomblob(16), x'00')")
        try session.set(HeldItem(object: .int(3), metadata: nil), "k", in: "")
      }
    }
    #expect(try visible() == 3)
  }

  @Test("4.14 works without shared memory, and in memory")
  func otherStores() throws {
    let memory = try Database.inMemory()
    let proxy = try ConnectionProxy(database: memory)
    let connection = try memory.makeConnection()
    for number in 1...5 {
      try connection.readWrite { try $0.setObject(number, forKey: "k") }
      let object: Int? = try proxy.object(forKey: "k")
      #expect(object == number)
    }
    try proxy.state.reader.perform { _ in
      let object: Int? = try proxy.object(forKey: "k")
      #expect(object == 5)
    }
  }

  @Test("4.14 never shows a pending value once another's commit came after its own")
  func overtakenFlush() throws {
    // Between the commit of the flush and the moment when the proxy is notified.
    proxy.state.hooks.onCommit = { [fixture] in
      fixture.proxy.state.hooks.onCommit = nil
      #expect(throws: Never.self) {
        let child = try fixture.store.worker("set", "k", "theirs")
        #expect(child.status == 0)
        let seen = try fixture.proxy.value(forKey: "k")
        #expect(seen == .string("theirs"))
        #expect(fixture.proxy.pendingChangeCount == 0)
      }
    }
    try proxy.setObject(1, forKey: "k", durability: .committed)
    #expect(proxy.state.hooks.onCommit == nil)
    #expect(try proxy.value(forKey: "k") == .string("theirs"))
  }

  @Test("4.3, 4.14 shows pending values with the update committed together with them, before the flush knows of it")
  func updateWithFlush() throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    try proxy.setObject(1, forKey: "k", durability: .committed)
    #expect(try proxy.object(forKey: "k") == 1)
    try proxy.setObject(2, forKey: "pending")
    proxy.state.hooks.onCommit = { [unowned proxy] in
      let seen = ["pending", "k"].map { try? proxy.object(forKey: $0, as: Int.self) }
      #expect(seen == [2, 3])
    }
    try proxy.update("k", as: Int.self) { _ in 3 }
    #expect(try proxy.object(forKey: "k") == 3)
  }

  @Test("4.1, 4.14 never treats reads from a snapshot older than its own settled flush as committed")
  func oldSnapshot() throws {
    let proxy = proxy
    let isFirst = Lock(true)
    _ = try proxy.state.readCommitted { session, last -> Bool? in
      guard
        isFirst.withLock({ first in
          defer { first = false }
          return first
        })
      else { return true }
      // Not known yet, so that the flush is not the next commit.
      try fixture.other.readWrite { try $0.setObject(0, forKey: "x") }
      try proxy.setObject(1, forKey: "k", durability: .committed)
      let seen = try proxy.state.visible("k", in: "", session, last)
      #expect(seen == nil)
      return nil
    }
    #expect(try visible() == 1)
  }

  // MARK: 4.15

  @Test("4.15 lets the last commit win as a whole value")
  func lastCommitWins() throws {
    try fixture.withWriteLockHeld {
      try proxy.setObject(1, forKey: "k", withMetadata: "mine")
      #expect(try visible() == 1)
    }
    try proxy.flushAndWait()
    try fixture.other.readWrite { try $0.setObject(2, forKey: "k", withMetadata: "theirs") }
    let row = try proxy.row(forKey: "k", as: Int.self, metadata: String.self)
    #expect(row?.object == 2 && row?.metadata == "theirs")
  }

  @Test("4.15 updates atomically, across proxies, connections and threads: increments add up")
  func increments() throws {
    let second = try ConnectionProxy(database: fixture.database)
    DispatchQueue.concurrentPerform(iterations: 4) { index in
      for _ in 0..<50 {
        do {
          switch index {
          case 0, 1: try proxy.update("n", as: Int.self) { ($0 ?? 0) + 1 }
          case 2: try second.update("n", as: Int.self) { ($0 ?? 0) + 1 }
          default:
            try fixture.other.readWrite { transaction in
              let old: Int? = try transaction.object(forKey: "n")
              try transaction.setObject((old ?? 0) + 1, forKey: "n")
            }
          }
        } catch {
          Issue.record(error)
        }
      }
    }
    #expect(try visible("n") == 200)
    let other: Int? = try second.object(forKey: "n")
    #expect(other == 200)
  }

  @Test("4.15 updates what is pending, keeps the metadata, and changes nothing when its closure throws")
  func updates() throws {
    struct Refusal: Error {}
    let manual = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    try manual.setObject(1, forKey: "k", withMetadata: "m")
    #expect(throws: Refusal.self) { try manual.update("k", as: Int.self) { _ in throw Refusal() } }
    #expect(manual.pendingChangeCount == 1)
    let result = try manual.update("k", as: Int.self) { old in old.map { $0 + 1 } }
    #expect(result == 2)
    #expect(manual.pendingChangeCount == 0)
    let row = try manual.row(forKey: "k", as: Int.self, metadata: String.self)
    #expect(row?.object == 2 && row?.metadata == "m")
    #expect(try fixture.committed("k") == 2)
    let none = try manual.update("k", as: Int.self) { _ in nil }
    #expect(none == nil)
    #expect(try !manual.hasObject(forKey: "k"))
    #expect(throws: CofferError.self) {
      try manual.setObject("text", forKey: "k")
      try manual.update("k", as: Int.self) { $0 }
    }
    try manual.writer.readWrite { (_: borrowing ReadWriteTransaction) throws -> Void in
      #expect(throws: CofferError.nestedTransaction) { try manual.update("k", as: Int.self) { $0 } }
    }
  }

  @Test("4.15 compares and sets atomically")
  func compareAndSet() throws {
    #expect(try proxy.compareAndSet("leader", expected: nil, new: "a"))
    #expect(try !proxy.compareAndSet("leader", expected: nil, new: "b"))
    try proxy.setObject("c", forKey: "leader")
    #expect(try proxy.compareAndSet("leader", expected: "c", new: "d"))
    try fixture.other.readWrite { try $0.setObject("theirs", forKey: "leader") }
    #expect(try !proxy.compareAndSet("leader", expected: "d", new: "e"))
    #expect(try proxy.compareAndSet("leader", expected: "theirs", new: nil))
    #expect(try !proxy.hasObject(forKey: "leader"))
  }

  @Test("4.15 compares with the stored value, and shows sanitizers only the new object")
  func compareAndSetSanitized() throws {
    let seen = Lock<[Value]>([])
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      seen.withLock { $0.append(value) }
      guard case .string(let text) = value else { return value }
      return .string("<\(text)>")
    }
    fixture.database.setRules(rules, forCollection: "names")
    try proxy.setObject("a", forKey: "leader", inCollection: "names")
    #expect(try !proxy.compareAndSet("leader", inCollection: "names", expected: "a", new: "b"))
    #expect(try proxy.compareAndSet("leader", inCollection: "names", expected: "<a>", new: "c"))
    #expect(try proxy.object(forKey: "leader", inCollection: "names") == "<c>")
    #expect(try proxy.compareAndSet("leader", inCollection: "names", expected: "<c>", new: nil))
    #expect(seen.withLock { $0 } == ["a", "b", "c"])
  }

  // MARK: 4.16

  @Test("4.16 returns its own flushed values, and the newest of others, even if its connection is in a long-lived read")
  func longLivedRead() throws {
    let connection = try fixture.database.makeConnection()
    let proxy = try ConnectionProxy(
      database: fixture.database, reader: connection, writer: fixture.other)
    try proxy.setObject(1, forKey: "k", durability: .committed)
    try connection.beginLongLivedReadTransaction()
    try proxy.setObject(2, forKey: "k", durability: .committed)
    let own: Int? = try proxy.object(forKey: "k")
    #expect(own == 2)
    try fixture.database.makeConnection().readWrite { try $0.setObject(3, forKey: "k") }
    let theirs: Int? = try proxy.object(forKey: "k")
    #expect(theirs == 3)
    let pinned: Int? = try connection.read { try $0.object(forKey: "k") }
    #expect(pinned == 1)
    try connection.endLongLivedReadTransaction()
  }

  // MARK: Lists

  @Test("lists and counts pending and committed items together")
  func lists() throws {
    try fixture.other.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(key, forKey: key, inCollection: "l") }
    }
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    try proxy.setObject("new", forKey: "bb", inCollection: "l")
    try proxy.setObject("changed", forKey: "c", inCollection: "l")
    try proxy.removeObject(forKey: "a", inCollection: "l")
    try proxy.replaceObject("nothing", forKey: "x", inCollection: "l")
    try proxy.setObject(1, forKey: "k", inCollection: "only pending")
    // Equal to Swift, and two keys.
    for key in ["e\u{301}", "\u{e9}"] { try proxy.setObject(key.utf8.count, forKey: key, inCollection: "accents") }
    for _ in 0..<2 {
      let accents = try proxy.objects(inCollection: "accents", as: Int.self)
      #expect(accents.map { Array($0.key.utf8) } == [Array("e\u{301}".utf8), Array("\u{e9}".utf8)])
      #expect(accents.map(\.object) == [3, 2])
      #expect(try proxy.allKeys(inCollection: "l") == ["b", "bb", "c"])
      #expect(try proxy.allKeys(inCollection: "l", within: .prefix("b")) == ["b", "bb"])
      #expect(try proxy.numberOfKeys(inCollection: "l") == 3)
      let objects = try proxy.objects(inCollection: "l", as: String.self)
      #expect(objects.map { [$0.key, $0.object] } == [["b", "b"], ["bb", "new"], ["c", "changed"]])
      #expect(try proxy.allCollections() == ["accents", "l", "only pending"])
      try proxy.flushAndWait()
    }
    try proxy.removeAllObjects(inCollection: "l")
    try proxy.setObject("after", forKey: "z", inCollection: "l")
    #expect(try proxy.allKeys(inCollection: "l") == ["z"])
    proxy.fetchedCollectionsFilter = .only([])
    #expect(try proxy.allKeys(inCollection: "l") == ["z"])
    #expect(try proxy.allCollections() == ["l"])
  }
}
