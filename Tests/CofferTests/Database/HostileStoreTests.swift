import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// Stores with authentic pages, made with the key, and contents that Coffer never writes.
@Suite("A store that an attacker made with its key") struct HostileStoreTests {
  private let store: TemporaryStore
  private let database: Database

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "c")
      for number in 0..<20 { try transaction.setObject("value \(number)", forKey: "k\(number)", inCollection: "c") }
    }
    try connection.readWrite { try $0.setObject("later", forKey: "k0", inCollection: "c") }
  }

  /// Changes the tables past all that Coffer checks.
  private func execute(_ sql: String) throws {
    try database.makeConnection().perform { session in
      try session.connection.beginWrite(.full)
      try session.connection.execute(sql)
      try session.connection.commit()
    }
  }

  // MARK: The schema

  /// Counts for ever.
  private static let endless = """
    ALTER TABLE items RENAME TO hidden;
    CREATE VIEW items(collection, key, version, modified, type, metadata, data) AS
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 1, 'k' || x, 1, 1, 5, NULL, x'61' FROM n
    """

  private static let schemas = [
    endless, "CREATE VIEW more AS SELECT * FROM items", "CREATE INDEX more ON items(hex(data))",
    "CREATE INDEX more ON collections(name) WHERE length(name) > 3", "DROP INDEX history_by_time", "DROP TABLE history",
    "CREATE TRIGGER more AFTER INSERT ON meta BEGIN DELETE FROM items; END",
    "CREATE TABLE more(x DEFAULT (randomblob(9)))", "ALTER TABLE vault ADD COLUMN more TEXT",
    "ALTER TABLE collections RENAME COLUMN flags TO banners",
    "DROP TABLE meta; CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB CHECK(length(value) > 0)) STRICT, WITHOUT ROWID",
  ]

  @Test("is not opened if the schema is not Coffer's: a view, a trigger, an expression", arguments: schemas)
  func schema(_ sql: String) throws {
    try execute(sql)
    #expect { try store.open() } throws: { error in
      guard case .damaged(part: "schema", _)? = error as? CofferError else { return false }
      return true
    }
    // Programs that already have it open use no view and no trigger, and a verification reports it.
    let connection = try database.makeConnection()
    try? connection.readWrite { try $0.setObject(1, forKey: "new", inCollection: "c") }
    if sql == Self.endless {
      #expect(throws: CofferError.self) { try connection.read { try $0.allKeys(inCollection: "c") } }
      #expect(try database.verify().problems.contains { $0.description.hasPrefix("The schema is damaged") })
    } else if !sql.contains("flags") {
      #expect(try connection.read { try $0.object(forKey: "k1", inCollection: "c") } == "value 1")
    }
  }

  @Test("has an index over an expression computed if it is added later: a limit that SECURITY.md names")
  func expressionAddedLater() throws {
    let connection = try database.makeConnection()
    // The least integer has no absolute value.
    try execute("CREATE INDEX more ON items(abs(CASE key WHEN 'new' THEN -9223372036854775808 END))")
    try connection.readWrite { try $0.setObject(1, forKey: "other", inCollection: "c") }
    #expect {
      try connection.readWrite { try $0.setObject(1, forKey: "new", inCollection: "c") }
    } throws: {
      if case CofferError.sqlite(_, "integer overflow") = $0 { true } else { false }
    }
    #expect(try database.verify().problems.contains { $0.description.hasPrefix("The schema is damaged") })
  }

  @Test("is opened after a vacuum, a backup, a re-encryption and a salvage, which recreate the schema")
  func sameSchema() throws {
    try database.makeConnection().vacuum()
    try database.rotate()
    let paths = [store.folder + "/copy.coffer", store.folder + "/salvaged.coffer"]
    try database.backup(to: paths[0], key: store.key)
    try database.close()
    _ = try Database.salvage(at: store.path, key: store.key, to: paths[1], newKey: store.key)
    for path in paths + [store.path] {
      let opened = try Database.open(at: path, key: store.key)
      try opened.makeConnection().vacuum()
      #expect(try opened.verify().problems.isEmpty)
      try opened.close()
      try Database.open(at: path, key: store.key).close()
    }
  }

  // MARK: Numbers

  private static let numbers: [String] = {
    let ends = ["9223372036854775807", "-9223372036854775808", "-1", "0", "1152921504606846976"]
    let columns = [
      "changes SET sequence = # WHERE sequence = (SELECT max(sequence) FROM changes)", "changes SET total = #",
      "changes SET time = #", "changes SET writer = #", "collections SET id = #",
      "collections SET flags = #", "collections SET history_count = #", "collections SET history_age = #",
      "items SET version = #", "items SET modified = #", "items SET type = #", "items SET collection = #",
      "history SET version = #", "history SET modified = #, time = #, ended = #", "history SET type = #",
      "sqlite_sequence SET seq = #",
    ]
    return columns.flatMap { column in ends.map { "UPDATE " + column.replacing("#", with: $0) } } + [
      "UPDATE changes SET keys = x'00ffffffffffffffffff010001'",
      "UPDATE changes SET keys = x'0001000104ffffffffffffffff7f'",
      "UPDATE items SET data = x''", "UPDATE items SET type = 10, data = x'05ffffffffffffffff7f'",
      "UPDATE items SET type = 7, data = x'7fefffffffffffff'", "UPDATE items SET type = 4, data = x'7ff8000000000000'",
      "UPDATE items SET metadata = x''", "DELETE FROM changes", "DELETE FROM collections",
      "DELETE FROM sqlite_sequence",
    ]
  }()

  @Test(
    "crashes no program with extreme numbers: they are errors, or harmless", arguments: numbers)
  func ends(_ sql: String) throws {
    let proxy = try ConnectionProxy(database: database)
    _ = try proxy.object(forKey: "k1", inCollection: "c", as: String.self)
    // A change that a table refuses does not count.
    guard (try? execute(sql)) != nil else { return }
    for database in [self.database, try? store.open()].compactMap({ $0 }) {
      // Whatever the result, it returns.
      let connection = try database.makeConnection()
      _ = try? connection.read { transaction in
        _ = try? transaction.commitNumber()
        for collection in ["c", "other"] {
          _ = try? transaction.itemInfos(inCollection: collection).map { Timestamp.text($0.modified) }
          _ = try? transaction.value(forKey: "k0", inCollection: collection)
          _ = try? transaction.item(forKey: "k0", inCollection: collection)
          _ = try? transaction.history(forKey: "k0", inCollection: collection).map { Timestamp.text($0.ended) }
          _ = try? transaction.historyLimits(forCollection: collection)
        }
        for number in [.min, -1, 0, 1, CommitNumber.max] { _ = try? transaction.changes(since: number) }
      }
      for key in ["k0", "k1", "new"] {
        try? connection.readWrite { try $0.setObject(1, forKey: key, inCollection: "c") }
        try? connection.readWrite { try $0.setObject(1, forKey: key, inCollection: "other") }
        try? proxy.setObject("x", forKey: key, inCollection: "c", durability: .committed)
      }
      try? connection.readWrite { try $0.setHistoryLimits(HistoryLimits(maximumCount: 1), forCollection: "c") }
      _ = try? connection.beginLongLivedReadTransaction()
      _ = try? connection.endLongLivedReadTransaction()
      _ = try? proxy.object(forKey: "k0", inCollection: "c", as: String.self)
      _ = try? database.status()
      _ = try? database.verify()
      try? connection.readWrite { try $0.removeAllObjects(inCollection: "c") }
      try? connection.erase()
      try? connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "c") }
    }
    try? proxy.close()
    try? database.close()
    _ = try? Database.salvage(at: store.path, key: store.key, to: store.folder + "/salvaged.coffer", newKey: store.key)
  }

  // MARK: What does not belong there

  @Test(
    "is never found intact if it has anything that Coffer would not have written",
    arguments: [
      ("INSERT INTO vault VALUES (1, x'00', x'00', x'00', x'00', x'00')", "The vault is damaged"),
      ("UPDATE changes SET keys = x'ff' WHERE sequence = 2", "Commit 2 in the change log does not parse."),
      (
        "UPDATE items SET collection = 7 WHERE key = 'k3'",
        "The value for \"k3\" refers to collection 7, which does not exist."
      ),
      (
        "UPDATE history SET collection = 7", "An earlier value for \"k0\" refers to collection 7, which does not exist."
      ),
      ("UPDATE collections SET flags = flags | 8", "The store's collection \"c\" is newer (10)"),
      ("UPDATE collections SET flags = flags | 1", "The declaration of \"c\" is damaged"),
      ("UPDATE collections SET history_count = NULL", "The limits of the history of \"c\" are invalid."),
      ("UPDATE collections SET id = -4", "The collection \"c\" has the ID -4."),
      (
        "UPDATE items SET type = 14 WHERE key = 'k3'",
        "The value for \"k3\" in \"c\" is damaged: it is unsealed in a sealed"
      ),
      (
        "UPDATE items SET type = 99 WHERE key = 'k3'",
        "The value for \"k3\" in \"c\" is damaged: unknown value kind 99"
      ),
      (
        "UPDATE items SET metadata = x'' WHERE key = 'k3'",
        "The value for \"k3\" in \"c\" is damaged: metadata has no kind"
      ),
      (
        "UPDATE items SET version = 500 WHERE key = 'k3'",
        "The value for \"k3\" in \"c\" refers to commit 500, which does not exist."
      ),
      ("UPDATE history SET ended = 500", "An earlier value for \"k0\" ended with commit 500, which is impossible."),
      (
        "UPDATE items SET key = CAST(x'6bff' AS TEXT) WHERE key = 'k3'",
        "The name of the key \"k\u{fffd}\" is not UTF-8."
      ),
      ("UPDATE collections SET name = CAST(x'6bff' AS TEXT)", "The name of the collection \"k\u{fffd}\" is not UTF-8."),
    ])
  func foreign(_ sql: String, _ sentence: String) throws {
    #expect(try database.verify().problems.isEmpty)
    try execute(sql)
    let problems = try store.open().verify().problems.map(\.description)
    #expect(problems.contains { $0.hasPrefix(sentence) }, "\(problems)")
  }

  @Test("reports bytes after the last page, and reads none of them")
  func tail() throws {
    try database.close()
    let opened = try store.open()
    let pageCount = try opened.status().pageCount
    #expect(try opened.status().tailProblems.isEmpty)
    try opened.close()
    for (size, count) in [(1, 1), (4096, 4096), (1 << 40, 1 << 40)] {
      // Sparse: reading it would take hours.
      #expect(truncate(store.path, off_t(Layout.envelopeByteCount + pageCount * Layout.pageByteCount + size)) == 0)
      let opened = try store.open()
      let sentence = "The file has \(count) bytes after the last page."
      #expect(try opened.status().tailProblems.first?.hasPrefix(sentence) ?? false)
      let report = try opened.verify()
      #expect(report.pageCount == pageCount)
      #expect(report.problems.count == 1 && report.problems[0].description.hasPrefix(sentence))
      try opened.close()
    }
  }
}
