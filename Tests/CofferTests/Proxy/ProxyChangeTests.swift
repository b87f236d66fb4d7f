import CofferCrypto
import Dispatch
import Testing

@testable import Coffer

@Suite("The changes of a connection proxy") struct ProxyChangeTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }

  init() throws {
    fixture = try ProxyFixture()
  }

  /// Object and metadata of the key `k`, as text.
  private func visibleRow() throws -> [String]? {
    try proxy.row(forKey: "k", as: String.self, metadata: String.self).map { [$0.object, $0.metadata ?? "-"] }
  }

  /// The same as it is committed.
  private func committedRow() throws -> [String]? {
    try fixture.reader.read { transaction in
      try transaction.row(forKey: "k", as: String.self, metadata: String.self).map { [$0.object, $0.metadata ?? "-"] }
    }
  }

  /// How many versions of the key `k` have been committed.
  private func version() throws -> Int? {
    try fixture.reader.read { try $0.changes(since: 0)?.filter { $0.concerns(key: "k") }.count }
  }

  // MARK: 4.5

  @Test("4.5 reads object and metadata consistently, pending and committed")
  func rows() async throws {
    #expect(try visibleRow() == nil)
    try fixture.withWriteLockHeld {
      try proxy.setObject("o", forKey: "k", withMetadata: "m")
      #expect(try visibleRow() == ["o", "m"])
    }
    try await proxy.flush()
    #expect(try visibleRow() == ["o", "m"])
    try proxy.setObject("o", forKey: "k")
    #expect(try visibleRow() == ["o", "-"])
    #expect(throws: CofferError.self) { try proxy.row(forKey: "k", as: Int.self, metadata: Int.self) }
  }

  @Test("4.5 never pairs an object with the metadata of another set")
  func rowsOfOneMoment() throws {
    try proxy.setObject("0", forKey: "k", withMetadata: "0")
    let isDone = DispatchSemaphore(value: 0)
    DispatchQueue.global().async { [proxy] in
      for number in 1...500 { try? proxy.setObject("\(number)", forKey: "k", withMetadata: "\(number)") }
      isDone.signal()
    }
    repeat {
      let row = try #require(try visibleRow())
      #expect(row[0] == row[1])
    } while isDone.wait(timeout: .now()) == .timedOut
  }

  @Test("4.5 finds no row where a removal is pending")
  func rowOfPendingRemoval() throws {
    try proxy.setObject("o", forKey: "k", withMetadata: "m", durability: .committed)
    try fixture.withWriteLockHeld {
      try proxy.removeObject(forKey: "k")
      #expect(try visibleRow() == nil)
      #expect(try committedRow() == ["o", "m"])
    }
    try proxy.flushAndWait()
    #expect(try visibleRow() == nil)
  }

  // MARK: 4.4

  @Test("4.4 merges a set and replacements in one batch into one set")
  func setThenReplace() throws {
    let before = try fixture.commitNumber()
    try fixture.withWriteLockHeld {
      try proxy.setObject("1", forKey: "k", withMetadata: "m")
      try proxy.replaceObject("2", forKey: "k")
      #expect(try visibleRow() == ["2", "m"])
      try proxy.replaceMetadata("n", forKey: "k")
      #expect(try visibleRow() == ["2", "n"])
    }
    try proxy.flushAndWait()
    #expect(try committedRow() == ["2", "n"])
    #expect(try version() == 1)
    #expect(try fixture.commitNumber() == before + 1)
  }

  @Test("4.4 replaces nothing if a removal is pending, or there is no row")
  func replaceOfNothing() throws {
    try proxy.setObject("1", forKey: "k", durability: .committed)
    let before = try fixture.commitNumber()
    try fixture.withWriteLockHeld {
      try proxy.removeObject(forKey: "k")
      try proxy.replaceObject("2", forKey: "k")
      try proxy.replaceMetadata("2", forKey: "k")
      try proxy.replaceObject("2", forKey: "absent", inCollection: "new")
      try proxy.replaceMetadata("2", forKey: "absent", inCollection: "new")
      #expect(try visibleRow() == nil)
      #expect(try !proxy.hasObject(forKey: "k"))
      #expect(try !proxy.hasObject(forKey: "absent", inCollection: "new"))
      #expect(try proxy.value(forKey: "absent", inCollection: "new") == nil)
    }
    try proxy.flushAndWait()
    #expect(try committedRow() == nil)
    #expect(try fixture.commitNumber() == before + 1)
    #expect(try fixture.reader.read { try $0.allCollections() } == [])
  }

  @Test("4.4 shows a replacement over the committed row until it is written, one update for both values")
  func replaceOfCommitted() throws {
    try proxy.setObject("1", forKey: "k", withMetadata: "m", durability: .committed)
    try fixture.withWriteLockHeld {
      try proxy.replaceObject("2", forKey: "k")
      #expect(try visibleRow() == ["2", "m"])
      try proxy.replaceMetadata("n", forKey: "k")
      try proxy.replaceObject("3", forKey: "k")
      #expect(try visibleRow() == ["3", "n"])
      #expect(try proxy.hasObject(forKey: "k"))
      #expect(try committedRow() == ["1", "m"])
    }
    try proxy.flushAndWait()
    #expect(try committedRow() == ["3", "n"])
    #expect(try version() == 2)
    try proxy.replaceMetadata(nil, forKey: "k", durability: .committed)
    #expect(try committedRow() == ["3", "-"])
    try proxy.replaceObject("4", forKey: "k", durability: .committed)
    #expect(try committedRow() == ["4", "-"])
    try proxy.replaceObject(String?.none, forKey: "k", durability: .committed)
    #expect(try committedRow() == nil)
  }

  @Test("4.4 decides in the flush if there is a row to replace, and what it keeps")
  func replaceIsAtomic() throws {
    try proxy.setObject("1", forKey: "k", durability: .committed)
    // Another writer comes between the replacement and its flush.
    try fixture.other.readWrite { transaction in
      try proxy.replaceObject("2", forKey: "k")
      #expect(try visibleRow() == ["2", "-"])
      try transaction.removeObject(forKey: "k")
    }
    try proxy.flushAndWait()
    #expect(try visibleRow() == nil)
    #expect(try committedRow() == nil)

    try fixture.other.readWrite { transaction in
      try proxy.replaceObject("3", forKey: "k")
      #expect(try visibleRow() == nil)
      try transaction.setObject("theirs", forKey: "k", withMetadata: "theirs")
    }
    try proxy.flushAndWait()
    #expect(try visibleRow() == ["3", "theirs"])
    #expect(try committedRow() == ["3", "theirs"])
  }

  @Test("4.4 replaces a set or a removal that is being flushed")
  func replaceDuringFlush() throws {
    try fixture.duringFlush(of: { try proxy.setObject("1", forKey: "k", withMetadata: "m") }) {
      try proxy.replaceObject("2", forKey: "k")
      #expect(try visibleRow() == ["2", "m"])
    }
    try proxy.flushAndWait()
    #expect(try committedRow() == ["2", "m"])
    #expect(try version() == 2)
    try fixture.duringFlush(of: { try proxy.removeObject(forKey: "k") }) {
      try proxy.replaceObject("3", forKey: "k")
      #expect(try visibleRow() == nil)
    }
    try proxy.flushAndWait()
    #expect(try committedRow() == nil)
    #expect(try visibleRow() == nil)
  }

  @Test("4.4 keeps a replacement complete if the flush before it has failed")
  func replaceAfterFailure() throws {
    let impatient = try fixture.store.open(busyTimeout: .zero)
    let proxy = try ConnectionProxy(database: impatient)
    try fixture.withWriteLockHeld {
      try proxy.setObject("1", forKey: "k", withMetadata: "m")
      #expect(throws: CofferError.busy) { try proxy.flushAndWait() }
      try proxy.replaceObject("2", forKey: "k")
      #expect(try proxy.row(forKey: "k", as: String.self, metadata: String.self)?.metadata == "m")
    }
    try proxy.close()
    #expect(try committedRow() == ["2", "m"])
    #expect(try version() == 1)
  }

  @Test("4.4 never applies a replacement to later writes of others once it is committed")
  func replaceBesideWriters() throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
    try proxy.setObject("1", forKey: "k", withMetadata: "m", durability: .committed)
    try proxy.replaceObject("2", forKey: "k")
    // The filter is called between the checks of pending and committed items.
    let isFirst = Lock(true)
    proxy.fetchedCollectionsFilter = CollectionFilter { [fixture] _ in
      guard
        isFirst.withLock({ first in
          defer { first = false }
          return first
        })
      else { return true }
      #expect(throws: Never.self) {
        try proxy.flushAndWait()
        try fixture.other.readWrite { try $0.setObject("theirs", forKey: "k", withMetadata: "theirs") }
      }
      return true
    }
    let row = try proxy.row(forKey: "k", as: String.self, metadata: String.self)
    proxy.fetchedCollectionsFilter = nil
    #expect(row?.object == "theirs")
    #expect(row?.metadata == "theirs")
    #expect(!isFirst.withLock { $0 })
  }

  @Test("1.6 refuses a replacement that cannot be encoded, and applies the rules of the collection")
  func replacementRules() throws {
    struct Refusal: Error {}
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      guard case .string(let text) = value else { throw Refusal() }
      return .string(text.lowercased())
    }
    let heard = Lock<[String]>([])
    rules.objectPostSanitizer = { _, _, value in heard.withLock { $0.append("\(value)") } }
    rules.metadataPostSanitizer = { _, _, value in heard.withLock { $0.append("~\(value)") } }
    fixture.database.setRules(rules, forCollection: "")
    try proxy.setObject("A", forKey: "k", withMetadata: "m", durability: .committed)
    try proxy.replaceObject("B", forKey: "k", durability: .committed)
    try proxy.replaceObject("B", forKey: "absent", durability: .committed)
    #expect(throws: Refusal.self) { try proxy.replaceObject(1, forKey: "k") }
    #expect(throws: CofferError.self) { try proxy.replaceMetadata(Value.null, forKey: "k") }
    #expect(try visibleRow() == ["b", "m"])
    #expect(heard.withLock { $0 } == [#"string("a")"#, #"~string("m")"#, #"string("b")"#])
  }

  @Test("4.3 removes several keys in one batch, and ignores absent ones")
  func removeSeveral() throws {
    for key in ["a", "b", "k"] { try proxy.setObject(key, forKey: key, durability: .committed) }
    let before = try fixture.commitNumber()
    try fixture.withWriteLockHeld {
      try proxy.removeObjects(forKeys: ["a", "b", "absent"])
      #expect(try !proxy.hasObject(forKey: "a"))
      #expect(try proxy.hasObject(forKey: "k"))
    }
    try proxy.flushAndWait()
    #expect(try fixture.commitNumber() == before + 1)
    #expect(try fixture.reader.read { try $0.allKeys() } == ["k"])
    try proxy.removeObjects(forKeys: ["k"], durability: .committed)
    #expect(try committedRow() == nil)
  }

  // MARK: 4.6

  @Test("4.6 discards unflushed changes: nothing is written, and later sets work")
  func reset() throws {
    try proxy.setObject("1", forKey: "k", withMetadata: "m", durability: .committed)
    let before = try fixture.commitNumber()
    try fixture.withWriteLockHeld {
      try proxy.setObject("2", forKey: "k")
      try proxy.setObject("2", forKey: "other")
      try proxy.discardPendingChanges()
      #expect(proxy.pendingChangeCount == 0)
      #expect(try visibleRow() == ["1", "m"])
      #expect(try !proxy.hasObject(forKey: "other"))
    }
    try proxy.flushAndWait()
    #expect(try fixture.commitNumber() == before)
    try proxy.discardPendingChanges()
    try fixture.withWriteLockHeld {
      try proxy.setObject("3", forKey: "k")
      try proxy.discardPendingChanges()
      try proxy.setObject("4", forKey: "k")
    }
    // The set has a flush of its own.
    try proxy.writer.perform { _ in }
    #expect(proxy.pendingChangeCount == 0)
    #expect(try committedRow() == ["4", "-"])
  }

  @Test("4.6 discards the changes of one key and no other")
  func resetOne() throws {
    try proxy.setObject("1", forKey: "k", durability: .committed)
    try fixture.withWriteLockHeld {
      try proxy.setObject("2", forKey: "k")
      try proxy.discardPendingChanges(forKey: "k")
      #expect(proxy.pendingChangeCount == 0)
      try proxy.setObject("2", forKey: "k", withMetadata: "2")
      try proxy.replaceObject("3", forKey: "k")
      try proxy.setObject("3", forKey: "other")
      try proxy.setObject("3", forKey: "k", inCollection: "elsewhere")
      try proxy.discardPendingChanges(forKey: "k")
      try proxy.discardPendingChanges(forKey: "absent")
      #expect(try visibleRow() == ["1", "-"])
      #expect(try proxy.object(forKey: "other") == "3")
      #expect(proxy.pendingChangeCount == 2)
    }
    try proxy.writer.perform { _ in }
    #expect(proxy.pendingChangeCount == 0)
    #expect(try committedRow() == ["1", "-"])
    #expect(try fixture.committed("other") == "3")
    #expect(try fixture.committed("k", inCollection: "elsewhere") == "3")
    #expect(try version() == 1)
  }

  @Test(
    "4.6 keeps what a flush has taken, readable throughout, and discards later changes", arguments: [true, false])
  func resetDuringFlush(_ isWhole: Bool) throws {
    try fixture.duringFlush(of: { try proxy.setObject("1", forKey: "k", withMetadata: "m") }) {
      try proxy.replaceObject("2", forKey: "k")
      #expect(try visibleRow() == ["2", "m"])
      if isWhole { try proxy.discardPendingChanges() } else { try proxy.discardPendingChanges(forKey: "k") }
      #expect(try visibleRow() == ["1", "m"])
      #expect(proxy.pendingChangeCount == 1)
    }
    try proxy.flushAndWait()
    #expect(try visibleRow() == ["1", "m"])
    #expect(try committedRow() == ["1", "m"])
    #expect(try version() == 1)
    try proxy.setObject("3", forKey: "k", durability: .committed)
    #expect(try committedRow() == ["3", "-"])
  }

  @Test("4.6 discards what a flush has failed to write")
  func resetAfterFailure() throws {
    let impatient = try fixture.store.open(busyTimeout: .zero)
    let proxy = try ConnectionProxy(database: impatient)
    try fixture.withWriteLockHeld {
      try proxy.setObject("1", forKey: "k")
      #expect(throws: CofferError.busy) { try proxy.flushAndWait() }
      try proxy.discardPendingChanges()
      #expect(proxy.pendingChangeCount == 0)
      try proxy.flushAndWait()
    }
    try proxy.setObject("2", forKey: "other", durability: .committed)
    try proxy.close()
    #expect(try committedRow() == nil)
    #expect(throws: CofferError.closed) { try proxy.discardPendingChanges() }
    #expect(throws: CofferError.closed) { try proxy.discardPendingChanges(forKey: "k") }
  }

  // MARK: Policies

  @Test(
    "4.2 leaves the flush to the caller, or to a delay",
    arguments: [
      ConnectionProxy.FlushPolicy.manually, .after(.seconds(3600)),
    ])
  func flushByHand(_ policy: ConnectionProxy.FlushPolicy) async throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: policy)
    #expect(proxy.flushPolicy == policy)
    let connection = proxy.writer
    let before = try fixture.commitNumber()
    for number in 1...3 {
      try proxy.setObject("\(number)", forKey: "k")
      // A flush would come before this in the queue.
      try connection.perform { _ in }
    }
    #expect(proxy.pendingChangeCount == 1)
    #expect(try committedRow() == nil)
    try await proxy.flush()
    #expect(try committedRow() == ["3", "-"])
    #expect(try fixture.commitNumber() == before + 1)

    // What else flushes: a write on the connection, a durable set, closing.
    try proxy.setObject("4", forKey: "k")
    let seen: String? = try await connection.readWrite { try $0.object(forKey: "k") }
    #expect(seen == "4")
    try proxy.setObject("5", forKey: "k")
    try await proxy.setObject("5", forKey: "other", durability: .committed)
    #expect(try committedRow() == ["5", "-"])
    try proxy.setObject("6", forKey: "k")
    try await proxy.close()
    #expect(try committedRow() == ["6", "-"])
  }

  @Test(
    "4.10 flushes what waits for a caller or a delay when the proxy is released",
    arguments: [
      ConnectionProxy.FlushPolicy.manually, .after(.seconds(3600)),
    ])
  func release(_ policy: ConnectionProxy.FlushPolicy) throws {
    let connection = fixture.other
    do {
      let proxy = try ConnectionProxy(
        database: fixture.database, reader: connection, writer: connection,
        flushPolicy: policy)
      try proxy.setObject("1", forKey: "k")
      try connection.perform { _ in }
      #expect(try committedRow() == nil)
      withExtendedLifetime(proxy) {}
    }
    try connection.perform { _ in }
    #expect(try committedRow() == ["1", "-"])
  }

  @Test("4.2 flushes by itself after a delay")
  func delayedFlush() async throws {
    let proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .after(.milliseconds(1)))
    for number in 1...3 {
      try proxy.setObject("\(number)", forKey: "k")
      while proxy.pendingChangeCount > 0 { await Task.yield() }
      #expect(try committedRow() == ["\(number)", "-"])
    }
  }
}
