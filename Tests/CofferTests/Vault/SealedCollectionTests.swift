import CofferCompat
import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("A sealed collection") struct SealedCollectionTests {
  private let fixture: SealedFixture
  private var vault: Vault { fixture.vault }
  private var connection: Connection { fixture.connection }
  private let locked = CofferError.vaultLocked(collection: "tokens")

  init() throws {
    fixture = try SealedFixture()
  }

  // MARK: Values

  @Test("returns every kind of value, with its metadata, after reopening")
  func values() throws {
    let values: [(key: String, value: Value)] = [
      ("bool", true), ("int", -3), ("uint64", .uint64(.max)), ("double", .double(-0.0)), ("string", ""),
      ("text", "päss"),
      ("data", .data(Data())), ("date", .date(Date(timeIntervalSinceReferenceDate: 0.1))), ("uuid", .uuid(UUID())),
      ("url", .url(try #require(URL(string: "https://example.org/?q=1")))), ("list", [1, .null, ["a": "b"]]),
      ("json", .json("{\"a\":1}")), ("secret", .secret(Secret("s3cret"))),
      ("large", .string(String(repeating: "x", count: 100_000))), ("", "no key"), ("é", "composed"),
    ]
    try connection.readWrite { transaction in
      for (key, value) in values {
        try transaction.setObject(value, forKey: key, inCollection: "tokens", withMetadata: value)
      }
    }
    for (key, _) in values {
      let item = try #require(try fixture.storedItem(forKey: key))
      #expect(item.object.kind == .sealed && item.metadata?.kind == .sealed)
    }
    try fixture.database.close()
    let database = try fixture.store.open()
    try database.vault.unlock(fixture.vaultKey)
    try database.makeConnection().read { transaction in
      for (key, value) in values {
        let item = try #require(try transaction.item(forKey: key, inCollection: "tokens"))
        #expect(item.value == value && item.metadata == value)
      }
    }
  }

  @Test("returns no value while the vault is locked, in any way, and lists names, sizes and versions")
  func lockedReads() throws {
    try fixture.set("s3cret", "note")
    try connection.read { transaction in
      // Once through the cache of the connection.
      for _ in 0..<3 { _ = try transaction.value(forKey: "k", inCollection: "tokens") }
    }
    vault.lock()
    try connection.read { transaction in
      for _ in 0..<3 {
        #expect(throws: locked) { try transaction.object(forKey: "k", inCollection: "tokens", as: String.self) }
      }
      #expect(throws: locked) { try transaction.value(forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.metadata(forKey: "k", inCollection: "tokens", as: String.self) }
      #expect(throws: locked) {
        try transaction.row(forKey: "k", inCollection: "tokens", as: String.self, metadata: String.self)
      }
      #expect(throws: locked) { try transaction.item(forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.serializedObject(forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.serializedMetadata(forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.serializedRow(forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) {
        try transaction.enumerateKeysAndObjects(inCollection: "tokens", as: String.self) { _, _, _ in }
      }
      #expect(throws: locked) {
        try transaction.enumerateKeysAndMetadata(inCollection: "tokens", as: String.self) { _, _, _ in }
      }
      #expect(try transaction.allKeys(inCollection: "tokens") == ["k"])
      #expect(try transaction.hasObject(forKey: "k", inCollection: "tokens"))
      #expect(try transaction.numberOfKeys(inCollection: "tokens") == 1)
      #expect(try transaction.version(forKey: "k", inCollection: "tokens") > 0)
      let info = try #require(try transaction.info(forKey: "k", inCollection: "tokens"))
      #expect(info.kind == .sealed && info.byteCount > 6)
      #expect(try transaction.itemInfos(inCollection: "tokens") == [info])
      #expect(try transaction.sealedCollections() == ["tokens"])
      #expect(try transaction.isSealed(collection: "tokens") && !transaction.isSealed(collection: "other"))
      // What is not there can be said without a key.
      #expect(try transaction.value(forKey: "absent", inCollection: "tokens") == nil)
    }
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("accepts no value while the vault is locked, in any way, and changes nothing; keys can be removed")
  func lockedWrites() throws {
    try fixture.set("s3cret", "note")
    let (before, snapshot) = (try fixture.storedItem(), try fixture.commitNumber())
    let serialized = SerializedValue(try Value.string("x").stored)
    vault.lock()
    try connection.readWrite { transaction in
      #expect(throws: locked) { try transaction.setObject("x", forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.setObject("x", forKey: "new", inCollection: "tokens") }
      #expect(throws: locked) {
        try transaction.setObject("x", forKey: "k", inCollection: "tokens", withMetadata: "y")
      }
      #expect(throws: locked) { try transaction.replaceObject("x", forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.replaceMetadata("x", forKey: "k", inCollection: "tokens") }
      #expect(throws: locked) { try transaction.setSerializedObject(serialized, forKey: "k", inCollection: "tokens") }
      try transaction.replaceObject("x", forKey: "absent", inCollection: "tokens")
    }
    #expect(try fixture.storedItem() == before && fixture.commitNumber() == snapshot)
    try connection.readWrite { transaction in
      try transaction.replaceMetadata(nil, forKey: "k", inCollection: "tokens")
      try transaction.touchObject(forKey: "k", inCollection: "tokens")
      try transaction.setObject("elsewhere", forKey: "k", inCollection: "other")
    }
    #expect(try fixture.storedItem()?.metadata == nil && fixture.storedItem()?.object == before?.object)
    try connection.readWrite { try $0.removeObject(forKey: "k", inCollection: "tokens") }
    #expect(try connection.read { try $0.numberOfKeys(inCollection: "tokens") } == 0)
  }

  @Test("is not changed by setting an equal value: no new version, no commit, no other bytes")
  func equalValues() throws {
    try fixture.set("s3cret", "note")
    let (before, snapshot) = (try fixture.storedItem(), try fixture.commitNumber())
    try fixture.set("s3cret", "note")
    try connection.readWrite { transaction in
      try transaction.replaceObject("s3cret", forKey: "k", inCollection: "tokens")
      try transaction.replaceMetadata("note", forKey: "k", inCollection: "tokens")
    }
    #expect(try fixture.storedItem() == before && fixture.commitNumber() == snapshot)
    // One of the two is another: the other keeps its bytes.
    try fixture.set("s3cret", "other")
    #expect(try fixture.storedItem()?.object == before?.object && fixture.commitNumber() == snapshot + 1)
    // As text it is the same, not as a secret.
    try fixture.set(Secret("s3cret"), "other")
    #expect(try fixture.commitNumber() == snapshot + 2)
    let (secret, again) = (try fixture.storedItem(), try fixture.commitNumber())
    try fixture.set(Secret("s3cret"), "other")
    #expect(try fixture.storedItem() == secret && fixture.commitNumber() == again)
  }

  @Test("never has the same bytes for the same value")
  func nonces() throws {
    for key in ["a", "b"] { try fixture.set("s3cret", "s3cret", forKey: key) }
    let items = try ["a", "b"].compactMap(fixture.storedItem)
    #expect(Set(items.flatMap { [$0.object.stored.array, $0.metadata?.array ?? []] }).count == 4)
    try fixture.set("other", forKey: "a")
    try fixture.set("s3cret", "s3cret", forKey: "a")
    #expect(try fixture.storedItem(forKey: "a") != items[0])
  }

  // MARK: Sealing and unsealing

  @Test("seals existing values, drops their history, and leaves no plaintext in pages or log")
  func sealing() throws {
    let canary = "canary-hunter2"
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "mail") }
    for number in 0..<300 {
      try connection.readWrite {
        try $0.setObject("\(canary) \(number)", forKey: "\(number % 100)", inCollection: "mail", withMetadata: canary)
      }
    }
    try connection.readWrite { try $0.setObject("plain-as-before", forKey: "k", inCollection: "other") }
    let infos = try connection.read { try $0.itemInfos(inCollection: "mail") }
    #expect(try pages().range(of: Data(canary.utf8)) != nil)
    try fixture.database.seal(collection: "mail")
    #expect(try pages().range(of: Data(canary.utf8)) == nil)
    #expect(try pages().range(of: Data("plain-as-before".utf8)) != nil)
    #expect(try fixture.store.bytes("-wal").isEmpty)
    try connection.read { transaction in
      #expect(try transaction.historyLimits(forCollection: "mail") == nil)
      #expect(try transaction.allKeysWithHistory(inCollection: "mail").isEmpty)
      #expect(try transaction.object(forKey: "7", inCollection: "mail") == "\(canary) 207")
      #expect(try transaction.metadata(forKey: "7", inCollection: "mail") == canary)
      let now = try transaction.itemInfos(inCollection: "mail")
      #expect(now.map(\.version) == infos.map(\.version) && now.map(\.modified) == infos.map(\.modified))
    }
    let snapshot = try fixture.commitNumber()
    try fixture.database.seal(collection: "mail")
    #expect(try fixture.commitNumber() == snapshot)
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  /// Every plaintext page of the database, including free ones.
  private func pages() throws -> Data {
    let path = "\(fixture.store.folder)/plain-\(UUID().uuidString).db"
    let plain = try SQLiteConnection(plainFileAt: path)
    try connection.perform { try $0.connection.copyPages(to: plain) }
    try plain.close()
    return try Data(contentsOf: URL(fileURLWithPath: path))
  }

  @Test("is reported as sealed, with an uncleared log, while an older snapshot is read")
  func pinnedSnapshot() throws {
    let database = try fixture.store.open(busyTimeout: .milliseconds(50))
    try database.vault.unlock(fixture.vaultKey)
    try connection.readWrite { try $0.setObject("old", forKey: "k", inCollection: "mail") }
    try connection.beginLongLivedReadTransaction()
    do {
      try database.seal(collection: "mail")
      Issue.record("the log was cleared")
    } catch CofferError.unfinished(let done, _, let cause) {
      #expect(cause == .busy && done.hasPrefix("The collection is sealed"))
    }
    #expect(try connection.read { try $0.object(forKey: "k", inCollection: "mail") } == "old")
    try connection.endLongLivedReadTransaction()
    #expect(try connection.storedItem(inCollection: "mail")?.object.kind == .sealed)
    try database.seal(collection: "mail")
    #expect(try fixture.store.bytes("-wal").isEmpty)
  }

  @Test("survives a salvage, including the vault")
  func salvage() throws {
    try fixture.set(Secret("s3cret"), "note")
    try fixture.database.close()
    let path = "\(fixture.store.folder)/salvaged.coffer"
    let report = try Database.salvage(
      at: fixture.store.path, key: fixture.store.key, to: path, newKey: fixture.store.key)
    #expect(report.isComplete && report.itemCount == 1)
    let saved = try Database.open(at: path, key: fixture.store.key)
    let connection = try saved.makeConnection()
    #expect(try connection.read { try $0.sealedCollections() } == ["tokens"])
    #expect(throws: locked) {
      try connection.read { try $0.object(forKey: "k", inCollection: "tokens", as: Secret.self) }
    }
    try saved.vault.unlock(fixture.vaultKey)
    let row = try connection.read {
      try $0.row(forKey: "k", inCollection: "tokens", as: Secret.self, metadata: String.self)
    }
    #expect(row?.object == Secret("s3cret") && row?.metadata == "note")
  }

  @Test("can be declared while empty, and stays declared when emptied")
  func declaration() throws {
    try fixture.database.seal(collection: "empty")
    #expect(try connection.read { try $0.sealedCollections() } == ["empty", "tokens"])
    try fixture.set("s3cret")
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "tokens")
      try transaction.removeAllObjects(inCollection: "tokens")
    }
    #expect(try connection.read { try $0.historyLimits(forCollection: "tokens") } == HistoryLimits())
    try fixture.set("again")
    #expect(try fixture.storedItem()?.object.kind == .sealed)
    try connection.erase()
    #expect(try connection.read { try $0.sealedCollections() } == ["empty", "tokens"])
    try fixture.set("again")
    #expect(try fixture.storedItem()?.object.kind == .sealed)
  }

  @Test("can be unsealed: its values and their history are then ordinary, and need no vault")
  func unsealing() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "tokens") }
    try fixture.set("earlier", "note")
    try fixture.set(Secret("s3cret"), "note")
    try fixture.database.unseal(collection: "tokens")
    vault.lock()
    #expect(try fixture.object() == Secret("s3cret"))
    #expect(try fixture.storedItem()?.object.kind == .secret)
    try connection.read { transaction in
      let history = try transaction.history(forKey: "k", inCollection: "tokens")
      #expect(history.map(\.text) == ["earlier"])
      #expect(try transaction.metadata(forKey: "k", inCollection: "tokens") == "note")
      #expect(try transaction.sealedCollections().isEmpty)
    }
    try fixture.set("set while locked")
    try vault.unlock(fixture.vaultKey)
    let snapshot = try fixture.commitNumber()
    try fixture.database.unseal(collection: "tokens")
    try fixture.database.unseal(collection: "never there")
    #expect(try fixture.commitNumber() == snapshot)
  }

  @Test("keeps a history if turned on after sealing, of sealed values, which can be restored")
  func history() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "tokens") }
    try fixture.set("first", "note")
    try fixture.set("second")
    let text = try connection.perform { session in
      try session.read { try session.connection.text(ofAllRowsIn: "history") }
    }
    #expect(!text.contains("first") && !text.contains("note"))
    let history = try connection.read { try $0.history(forKey: "k", inCollection: "tokens") }
    #expect(history.map(\.text) == ["first"] && history.first?.metadata == "note")
    let version = try #require(history.first?.version)
    vault.lock()
    #expect(throws: locked) { try connection.read { try $0.history(forKey: "k", inCollection: "tokens") } }
    #expect(throws: locked) {
      try connection.readWrite { try $0.restoreObject(forKey: "k", inCollection: "tokens", version: version) }
    }
    try vault.unlock(fixture.vaultKey)
    try connection.readWrite { try $0.restoreObject(forKey: "k", inCollection: "tokens", version: version) }
    #expect(try fixture.object() == "first")
  }

  // MARK: Values out of place

  @Test("does not open a value moved to another key, collection, field or vault")
  func moved() throws {
    try fixture.database.seal(collection: "other")
    for key in ["a", "b"] { try fixture.set("value \(key)", "note", forKey: key) }
    try connection.readWrite { try $0.setObject("other", forKey: "a", inCollection: "other", withMetadata: "note") }
    func expectDamage(_ sql: String, _ key: String = "a", in collection: String = "tokens", part: ItemPart = .object)
      throws
    {
      try fixture.execute("CREATE TABLE kept AS SELECT * FROM items")
      try fixture.execute(sql)
      CofferTests.expectDamage {
        try connection.read { transaction in
          if part == .object { return try transaction.value(forKey: key, inCollection: collection) }
          return try transaction.metadata(forKey: key, inCollection: collection, as: Value.self)
        }
      }
      let problems = try fixture.database.verify().problems.map(\.description)
      #expect(problems.contains { $0.contains("does not authenticate") || $0.contains("too short") }, "\(sql)")
      try fixture.execute("DELETE FROM items; INSERT INTO items SELECT * FROM kept; DROP TABLE kept")
    }
    let data = "(SELECT data FROM items WHERE collection=1 AND key='b')"
    try expectDamage("UPDATE items SET data=\(data) WHERE collection=1 AND key='a'")
    try expectDamage("UPDATE items SET data=\(data) WHERE collection=2", in: "other")
    try expectDamage("UPDATE items SET data=substr(metadata,2) WHERE collection=1 AND key='a'")
    try expectDamage(
      "UPDATE items SET metadata=CAST(x'0e'||data AS BLOB) WHERE collection=1 AND key='a'", part: .metadata)
    try expectDamage("UPDATE items SET key='c' WHERE collection=1 AND key='a'", "c")
    try expectDamage("UPDATE items SET data=substr(data,1,length(data)-1) WHERE collection=1 AND key='a'")
    try expectDamage("UPDATE items SET data=x'' WHERE collection=1 AND key='a'")
    // From a vault of the same generation in another store.
    let foreign = try SealedFixture()
    try foreign.set("value a", "note", forKey: "a")
    let bytes = try #require(try foreign.storedItem(forKey: "a")).object.stored.array
    let hex = bytes.map { String(format: "%02x", $0) }.joined()
    try expectDamage("UPDATE items SET data=x'\(hex)' WHERE collection=1 AND key='a'")
    #expect(try fixture.object(forKey: "a") == "value a")
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("does not open a value with any bit flipped, and can replace it")
  func flipped() throws {
    try fixture.set("s3cret")
    let bytes = try #require(try fixture.storedItem()).object.stored.array
    for offset in bytes.indices {
      var edited = bytes
      edited[offset] ^= 1 << UInt8(offset % 8)
      try fixture.execute("UPDATE items SET data=x'\(edited.map { String(format: "%02x", $0) }.joined())'")
      #expect("byte \(offset)") { try fixture.object(as: String.self) } throws: {
        ($0 as? CofferError)?.isDamage ?? false
      }
    }
    try fixture.set("new")
    #expect(try fixture.object() == "new")
  }

  // MARK: Others

  @Test("notifies observers of its keys, with values that stay sealed until requested")
  func observers() throws {
    final class Listener: TransactionObserver {
      let events = Lock<[DatabasePreUpdateEvent]>([])
      func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { kind.collection == "tokens" }
      func databaseWillChange(with event: DatabasePreUpdateEvent) { events.withLock { $0.append(event) } }
    }
    let listener = Listener()
    fixture.database.add(transactionObserver: listener)
    try fixture.set("hunter2", "hunter2")
    try fixture.set("hunter3")
    let events = listener.events.withLock { $0 }
    #expect(try events.map { try $0.newObject } == ["hunter2", "hunter3"])
    #expect(try events.map { try $0.oldMetadata } == [nil, "hunter2"])
    var text = ""
    dump(events, to: &text)
    #expect(!text.contains("hunter"))
    for event in events {
      #expect([event.new?.object.kind, event.new?.metadata?.kind].allSatisfy { $0 == nil || $0 == .sealed })
    }
    vault.lock()
    #expect(throws: locked) { try events[0].newObject }
  }

  @Test("applies its rules to plaintext values")
  func rules() throws {
    let heard = Lock<[Value]>([])
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      guard case .string(let text) = value else { throw Refusal() }
      return .string(text.uppercased())
    }
    rules.objectPostSanitizer = { _, _, value in heard.withLock { $0.append(value) } }
    fixture.database.setRules(rules, forCollection: "tokens")
    try fixture.set("s3cret")
    #expect(try fixture.object() == "S3CRET")
    let proxy = try ConnectionProxy(database: fixture.database)
    try proxy.setObject("other", forKey: "o", inCollection: "tokens", durability: .committed)
    #expect(heard.withLock { $0 } == ["S3CRET", "OTHER"])
    #expect(throws: Refusal.self) { try fixture.set(1) }
  }

  @Test("works in memory, and read-only")
  func otherStores() throws {
    let memory = try Database.inMemory()
    try memory.vault.create(key: fixture.vaultKey)
    try memory.seal(collection: "tokens")
    let inMemory = try memory.makeConnection()
    try inMemory.readWrite { try $0.setObject("s3cret", forKey: "k", inCollection: "tokens") }
    #expect(try inMemory.storedItem()?.object.kind == .sealed)
    #expect(try inMemory.read { try $0.object(forKey: "k", inCollection: "tokens") } == "s3cret")
    memory.vault.lock()
    try memory.vault.unlock(fixture.vaultKey)

    try fixture.set("s3cret")
    try fixture.database.close()
    let readOnly = try Database.open(at: fixture.store.path, key: fixture.store.key, options: .init(isReadOnly: true))
    try readOnly.vault.unlock(fixture.vaultKey)
    let connection = try readOnly.makeConnection()
    #expect(try connection.read { try $0.object(forKey: "k", inCollection: "tokens") } == "s3cret")
    #expect(throws: CofferError.readOnly) { try readOnly.seal(collection: "more") }
    #expect(throws: CofferError.readOnly) { try readOnly.vault.addSlot(fixture.store.key) }
  }
}
