import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Items that expire") struct ExpiryTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    database.core.clock.stop(at: 1000)
  }

  /// A second and a half after the test begins.
  private let expiry = Date(milliseconds: 2500)

  private func set(_ key: String = "k", in collection: String = "", expires: Date? = Date(milliseconds: 2500)) throws {
    try connection.readWrite { try $0.setObject(key, forKey: key, inCollection: collection, expires: expires) }
  }

  private func keys(_ connection: Connection? = nil) throws -> [String] {
    try (connection ?? self.connection).read { try $0.allKeys() }
  }

  /// The rows of the table, whether they show or not.
  private func rows() throws -> [String] {
    try connection.perform { session in
      try session.read {
        var keys: [String] = []
        try session.connection.statement("SELECT key FROM items ORDER BY key").query { keys.append($0.text(0)) }
        return keys
      }
    }
  }

  private func commits() throws -> [Commit] { try connection.read { try $0.rememberedCommits() } }

  // MARK: - Reading

  @Test("are gone for transactions when their time comes, from every list and count")
  func transactions() throws {
    try set()
    try set("stays", expires: nil)
    try set("alone", in: "other")
    let info = try connection.read { try $0.info(forKey: "k") }
    #expect(info?.expires == expiry)
    database.core.clock.stop(at: 2499)
    #expect(try keys() == ["k", "stays"])
    database.core.clock.stop(at: 2500)
    #expect(try rows() == ["alone", "k", "stays"])
    try connection.read { transaction in
      #expect(try transaction.allKeys() == ["stays"])
      #expect(try transaction.value(forKey: "k") == nil)
      #expect(try transaction.item(forKey: "k") == nil)
      #expect(try transaction.info(forKey: "k") == nil)
      #expect(try !transaction.hasObject(forKey: "k"))
      #expect(try transaction.version(forKey: "k") == 0)
      #expect(try transaction.numberOfKeys() == 1)
      #expect(try transaction.numberOfKeysInAllCollections() == 1)
      #expect(try transaction.allCollections() == [""])
      #expect(try transaction.itemInfos().map(\.key) == ["stays"])
      var enumerated: [String] = []
      try transaction.enumerateKeysAndObjects(as: Value.self) { key, _, _ in enumerated.append(key) }
      #expect(enumerated == ["stays"])
    }
  }

  @Test("are gone from a proxy's memory, too, flushed or not, without a commit in between")
  func cached() throws {
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try proxy.setObject(7, forKey: "number", expires: expiry)
    try proxy.setObject("t", forKey: "text", expires: expiry)
    try proxy.flushAndWait()
    try proxy.setObject(true, forKey: "pending", expires: expiry)
    let key = Key("number", default: 0)
    for _ in 0..<2 {
      #expect(try proxy.object(forKey: "number", as: Int.self) == 7)
      #expect(proxy[key] == 7)
      #expect(try proxy.object(forKey: "text", as: String.self) == "t")
      #expect(try proxy.object(forKey: "pending", as: Bool.self) == true)
    }
    #expect(try proxy.expiry(forKey: "pending") == expiry)
    #expect(try proxy.allKeys() == ["number", "pending", "text"])
    database.core.clock.stop(at: 2500)
    #expect(try proxy.object(forKey: "number", as: Int.self) == nil)
    #expect(proxy[key] == 0)
    #expect(try proxy.object(forKey: "text", as: String.self) == nil)
    #expect(try proxy.object(forKey: "pending", as: Bool.self) == nil)
    #expect(try proxy.allKeys().isEmpty)
    #expect(try proxy.allCollections().isEmpty)
    #expect(try proxy.snapshot(ofCollections: [""]).items.isEmpty)
  }

  @Test("stay in the snapshot of a long-lived read that began before")
  func longLived() throws {
    try set()
    let reader = try database.makeConnection()
    try reader.beginLongLivedReadTransaction()
    database.core.clock.stop(at: 3000)
    #expect(try keys(reader) == ["k"])
    _ = try reader.endLongLivedReadTransaction()
    #expect(try keys(reader).isEmpty)
  }

  @Test("are gone in a read-only store")
  func readOnly() throws {
    try set()
    try database.close()
    var options = Database.Options.quiet
    options.isReadOnly = true
    let reader = try Database.open(at: store.path, key: store.key, options: options)
    reader.core.clock.stop(at: 3000)
    #expect(try keys(reader.makeConnection()).isEmpty)
    #expect(try ConnectionProxy(database: reader).value(forKey: "k") == nil)
  }

  // MARK: - Staying

  @Test("stay if set again, keep their time if replaced or updated, and change with a new time")
  func again() throws {
    for key in ["set", "replaced", "updated", "touched"] { try set(key) }
    try connection.readWrite { transaction in
      try transaction.setObject("new", forKey: "set")
      try transaction.replaceObject("new", forKey: "replaced")
      try transaction.touchObject(forKey: "touched")
    }
    let proxy = try ConnectionProxy(database: database)
    try proxy.update("updated", as: String.self) { _ in "new" }
    try proxy.close()
    func expiries() throws -> [Date?] { try connection.read { try $0.itemInfos().map(\.expires) } }
    #expect(try expiries() == [expiry, nil, expiry, expiry])
    let before = try commits().count
    try set("set", expires: expiry)
    try connection.readWrite { try $0.setObject("set", forKey: "set", expires: expiry, due: .distantFuture) }
    #expect(try commits().count == before + 2)
    #expect(try connection.read { try $0.info(forKey: "set")?.due } == .distantFuture)
    database.core.clock.stop(at: 2500)
    #expect(try keys().isEmpty)
  }

  @Test("keep their time to the millisecond, however often it is copied")
  func exact() {
    for milliseconds in Int64(1_769_848_200_000)..<1_769_848_201_000 {
      #expect(Date(milliseconds: milliseconds).milliseconds == milliseconds)
    }
  }

  // MARK: - Going

  @Test("are removed before the next write, in a separate commit that records why")
  func sweep() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "kept") }
    try set()
    try set("k", in: "kept")
    database.core.clock.stop(at: 2600)
    try set("k", expires: nil)
    let (removal, insertion) = try (commits().dropLast().last, commits().last)
    #expect(removal?.kind(forKey: "k") == .removed)
    #expect(removal?.hasExpired(key: "k") ?? false)
    // By no one, at the time of the item.
    #expect(removal?.author == nil && removal?.expiry(ofKey: "k", inCollection: "") == expiry)
    #expect(removal?.hasExpired(key: "k", inCollection: "kept") ?? false)
    #expect(insertion?.kind(forKey: "k") == .inserted)
    #expect(insertion?.hasExpired(key: "k") == false)
    let history = try connection.read { try $0.history(forKey: "k", inCollection: "kept") }
    #expect(history.map(\.hasExpired) == [true])
    #expect(history.map(\.expires) == [expiry])
    #expect(try database.verify().problems.isEmpty)
  }

  @Test("are removed without a write, and reported once to everyone")
  func timer() async throws {
    let proxy = try ConnectionProxy(database: database)
    let other = try store.open()
    other.core.clock.stop(at: 1000)
    let listener = try ConnectionProxy(database: other)
    let changes = try listener.changes()
    let commits = try other.commits()
    try await proxy.setObject(1, forKey: "k", expires: expiry, durability: .committed)
    database.core.clock.stop(at: 2500)
    other.core.clock.stop(at: 2500)
    for core in [database.core, other.core] { core.expiries.check() }
    var kinds: [ChangeKind] = []
    for await event in changes {
      kinds += event.changes.map(\.kind)
      if kinds.last == .removed { break }
    }
    #expect(kinds == [.inserted, .removed] || kinds == [.removed], "\(kinds)")
    var expiries = 0
    for await commit in commits where commit.hasExpired(key: "k") {
      expiries += 1
      break
    }
    #expect(expiries == 1)
    #expect(try rows().isEmpty)
    #expect(try self.commits().filter { $0.hasExpired(key: "k") }.count == 1)
    try await other.close()
  }

  @Test("set with a past time are gone immediately, and removed by the next write")
  func past() throws {
    try set(expires: .distantPast)
    #expect(try keys().isEmpty)
    try set("other", expires: nil)
    #expect(try rows() == ["other"])
  }

  @Test("are removed from a sealed collection even if its vault is locked")
  func sealed() throws {
    try database.vault.create(key: .key(StoreVector.vaultKey))
    try database.seal(collection: "secret")
    try set("token", in: "secret")
    database.vault.lock()
    database.core.clock.stop(at: 2500)
    try set("other", expires: nil)
    #expect(try rows() == ["other"])
  }

  @Test("stay in a collection that only a newer version knows")
  func newer() throws {
    try set("k", in: "newer")
    try connection.perform { try $0.connection.execute("UPDATE collections SET flags = 8") }
    database.core.clock.stop(at: 2500)
    try set("other", expires: nil)
    #expect(try rows() == ["k", "other"])
  }

  @Test("are removed a thousand at a time")
  func many() throws {
    try connection.readWrite { transaction in
      for number in 0..<1500 { try transaction.setObject(number, forKey: "\(number)", expires: expiry) }
    }
    database.core.clock.stop(at: 2500)
    try set("a", expires: nil)
    #expect(try rows().count == 501)
    #expect(try keys() == ["a"])
    try set("b", expires: nil)
    #expect(try rows() == ["a", "b"])
  }

  @Test("are not removed in a transaction that is undone, which sees none of them")
  func undone() throws {
    try set()
    database.core.clock.stop(at: 2500)
    try connection.readWrite { transaction in
      let version = try transaction.version(forKey: "k")
      #expect(version == 0)
      transaction.rollback()
    }
    #expect(try rows().isEmpty)
    #expect(try commits().last?.hasExpired(key: "k") ?? false)
  }
}

@Suite("The author of a commit") struct AuthorTests {
  private let store: TemporaryStore
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    var options = Database.Options.quiet
    options.actor = "alice"
    connection = try Database.openOrCreate(at: store.path, key: store.key, options: options).makeConnection()
  }

  private func lastAuthor() throws -> Author? { try connection.read { try $0.rememberedCommits().last?.author } }

  @Test("is the program, its user, its host, and the actor it names")
  func ofCommit() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    let author = try #require(try lastAuthor())
    #expect(author.program == CommandLine.arguments[0].split(separator: "/").last.map(String.init))
    #expect(author.user == NSUserName())
    #expect(author.host == ProcessInfo.processInfo.hostName)
    #expect(author.actor == "alice")
    try connection.readWrite { transaction in
      transaction.actor = "bob"
      try transaction.setObject(2, forKey: "k")
    }
    #expect(try lastAuthor()?.actor == "bob")
    try connection.readWrite { try $0.setObject(3, forKey: "k") }
    #expect(try lastAuthor()?.actor == "alice")
    #expect(try connection.read { try $0.changes(since: 1)?.first?.time } != nil)
  }

  @Test("is in the history of an item: who set it, and who overwrote or removed it")
  func ofHistory() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "kept") }
    for (actor, value) in [("bob", 1), ("carol", 2), ("dave", nil)] {
      try connection.readWrite { transaction in
        transaction.actor = actor
        try transaction.setObject(value, forKey: "k", inCollection: "kept")
        try transaction.setObject(value, forKey: "k")
      }
    }
    let history = try connection.read { try $0.history(forKey: "k", inCollection: "kept") }
    #expect(history.map { $0.author?.actor } == ["carol", "bob"])
    #expect(history.map { $0.endedBy?.actor } == ["dave", "carol"])
    try connection.readWrite { try $0.setObject(3, forKey: "k", inCollection: "kept") }
    #expect(try connection.read { try $0.item(forKey: "k", inCollection: "kept")?.author?.actor } == "alice")
  }

  @Test(
    "is one line of printable text, whatever the input",
    arguments: ["a\nb\u{1B}[31m", String(repeating: "x", count: 200)])
  func printable(actor: String) throws {
    try connection.readWrite { transaction in
      transaction.actor = actor
      try transaction.setObject(actor, forKey: "k")
    }
    let read = try #require(try lastAuthor()?.actor)
    #expect(read.unicodeScalars.count <= 128)
    #expect(!read.unicodeScalars.contains { $0.properties.generalCategory == .control })
  }

  @Test("is nil if its row has something else")
  func foreign() throws {
    try connection.perform { try $0.connection.execute("UPDATE changes SET author = 'x'") }
    #expect(try lastAuthor() == nil)
  }
}
