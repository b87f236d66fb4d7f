import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Plain import") struct PlainImportTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject("kept", forKey: "old", inCollection: "c")
      try transaction.setObject("elsewhere", forKey: "old", inCollection: "d")
    }
  }

  private func value(_ key: String, _ collection: String = "c") throws -> Value? {
    try connection.read { try $0.value(forKey: key, inCollection: collection) }
  }

  @Test("accepts a hand-made table, with fewer columns and without types")
  func handmade() throws {
    let file = try PlainFile(
      store, "hand.sqlite", "CREATE TABLE Settings(value, key TEXT, note TEXT)",
      "INSERT INTO settings VALUES (1, 'int', 'n'), (1.5, 'double', NULL), ('t', 'text', ''), (x'00', 'data', '')")
    let report = try database.importPlain(from: file.path, format: .sqlite)
    #expect(report.insertedCount == 4 && report.collections == [""])
    #expect(try value("int", "") == 1 && value("double", "") == 1.5 && value("text", "") == "t")
    #expect(try value("data", "") == .data(Data([0])))
  }

  @Test("accepts a table beside anything that SQLite allows")
  func largeSchema() throws {
    let columns = (0..<1500).map { "c\($0)" }.joined(separator: ", ")
    let alternatives = (0..<200).map { "a = \($0)" }.joined(separator: " OR ")
    let selects = Array(repeating: "SELECT a FROM checked", count: 20).joined(separator: " UNION ")
    let arguments = (0..<60).map { "new.a + \($0)" }.joined(separator: ", ")
    let file = try PlainFile(
      store, "plain.sqlite", "CREATE TABLE settings (collection, key, type, value)",
      "INSERT INTO settings VALUES ('c', 'k', 'string', 'v')", "CREATE TABLE wide (\(columns))",
      "CREATE TABLE checked (a CHECK (\(alternatives)))", "CREATE VIEW united AS \(selects)",
      "CREATE TRIGGER t AFTER INSERT ON checked BEGIN SELECT max(\(arguments)); END")
    _ = try database.importPlain(from: file.path, format: .sqlite)
    #expect(try value("k") == "v")
  }

  @Test("merges, replaces, and does dry runs")
  func modes() throws {
    let file = try PlainFile(
      store, "modes.sqlite", "CREATE TABLE settings(collection, key, value)",
      "INSERT INTO settings VALUES ('c', 'new', 1), ('c', 'newer', 2)")
    let trial = try database.importPlain(from: file.path, format: .sqlite, mode: .replace, isDryRun: true)
    #expect(trial.insertedCount == 2 && trial.removedCount == 1)
    #expect(try value("new") == nil && value("old") == "kept")
    #expect(try database.importPlain(from: file.path, format: .sqlite).insertedCount == 2)
    #expect(try value("new") == 1 && value("old") == "kept")
    let replaced = try database.importPlain(from: file.path, format: .sqlite, mode: .replace)
    #expect(replaced.unchangedCount == 2 && replaced.removedCount == 1)
    #expect(try value("old") == nil && value("old", "d") == "elsewhere")
  }

  @Test("reads what is still in the log of a running program")
  func log() throws {
    let file = try PlainFile(store, "wal.sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE settings(key, value)")
    // Closed, the last connection would fold the log into the file.
    let writer = try SQLiteConnection(plainFileAt: file.path)
    try writer.execute("INSERT INTO settings VALUES ('k', 7)")
    _ = try database.importPlain(from: file.path, format: .sqlite)
    #expect(try value("k", "") == 7)
    try writer.close()
  }

  @Test("does not ignore the journal of a program that crashed during a write")
  func journal() throws {
    let file = try PlainFile(
      store, "hot.sqlite", "CREATE TABLE settings(key, value); INSERT INTO settings VALUES ('a', 1)")
    // The header of a rollback journal, https://www.sqlite.org/fileformat2.html#the_rollback_journal, for no pages.
    let count = try Data(contentsOf: URL(fileURLWithPath: file.path)).count / 4096
    let header: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 0, 0, 0, 0, 0]
    let sizes: [UInt8] = [0, 0, 0, UInt8(count), 0, 0, 2, 0, 0, 0, 0x10, 0]
    let journal = Data(header + sizes) + Data(count: 512 - 28)
    try journal.write(to: URL(fileURLWithPath: file.path + "-journal"))
    let error = #expect(throws: CofferError.self) { try database.importPlain(from: file.path, format: .sqlite) }
    guard case .inputOutput(file.path, _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: file.path + "-journal")) == journal)
  }

  static let hostile: [(name: String, sql: String, complaint: String)] = [
    ("a view", "CREATE TABLE t(key, value); CREATE VIEW settings AS SELECT * FROM t", "not an ordinary table"),
    ("a virtual table", "CREATE VIRTUAL TABLE settings USING fts5(key, value)", "not an ordinary table"),
    (
      "computed columns", "CREATE TABLE settings(key, value, x AS (zeroblob(100000000)))", "has computed columns"
    ),
    ("no table", "CREATE TABLE other(key, value)", "has no table settings"),
    ("no key", "CREATE TABLE settings(collection, value)", "has no column key"),
    (
      "a wrong type",
      "CREATE TABLE settings(key, type, value); INSERT INTO settings VALUES ('a','int',1),('b','int',1.5)",
      "row 2, column value: it is not a valid int"
    ),
    (
      "an unknown type", "CREATE TABLE settings(key, type, value); INSERT INTO settings VALUES ('b','float',1.5)",
      "row 1, column value: unknown type \"float\""
    ),
    (
      "bytes that are none",
      "CREATE TABLE settings(key, type, value); INSERT INTO settings VALUES ('b','array',x'0901')",
      "row 1, column value: the stored bytes are malformed"
    ),
    (
      "a date that is none", "CREATE TABLE settings(key, value, expires); INSERT INTO settings VALUES ('a', 1, 5)",
      "row 1, column expires: it is not a valid date"
    ),
    ("NULL", "CREATE TABLE settings(key, value); INSERT INTO settings VALUES ('a', 1), ('b', NULL)", "row 2"),
    ("a key that is no text", "CREATE TABLE settings(key, value); INSERT INTO settings VALUES (5, 1)", "column key"),
    (
      "text that is not UTF-8",
      "CREATE TABLE settings(key, value); INSERT INTO settings VALUES ('a', CAST(x'ff' AS TEXT))",
      "row 1, column value: it is not UTF-8"
    ),
    (
      "a key twice", "CREATE TABLE settings(key, value); INSERT INTO settings VALUES ('a', 1), ('a', 2)",
      "row 2, column key: the key occurs twice"
    ),
  ]

  @Test("refuses unreliable input, names the place, and changes nothing", arguments: hostile.indices)
  func refusal(_ index: Int) throws {
    let (name, sql, complaint) = Self.hostile[index]
    let before = try database.storedItems()
    let file = try PlainFile(store, "hostile.sqlite", sql)
    let error = #expect(throws: CofferError.self, "\(name)") {
      try database.importPlain(from: file.path, format: .sqlite)
    }
    guard case .malformedSettings(file.path, let reason)? = error else {
      Issue.record("\(name): \(String(describing: error))")
      return
    }
    #expect(reason.contains(complaint), "\(name): \(reason)")
    #expect(try database.storedItems() == before)
  }

  @Test("never runs a trigger, and does not write to the file")
  func trigger() throws {
    let file = try PlainFile(
      store, "trigger.sqlite", "CREATE TABLE settings(key, value); INSERT INTO settings VALUES ('a', 1)",
      "CREATE TRIGGER t AFTER INSERT ON settings BEGIN DELETE FROM settings; END")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file.path))
    #expect(try database.importPlain(from: file.path, format: .sqlite).insertedCount == 1)
    #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == bytes)
  }

  @Test("distinguishes a file that is not a database from a missing or damaged one")
  func noDatabase() throws {
    let file = store.folder + "/text"
    try Data(repeating: 0x61, count: 5000).write(to: URL(fileURLWithPath: file))
    for format in [PlainImportFormat.sqlite, .yapDatabase] {
      #expect(throws: CofferError.malformedSettings(source: file, reason: "file is not a database")) {
        try database.importPlain(from: file, format: format)
      }
      #expect(throws: CofferError.inputOutput(path: file + "x", reason: "no such file")) {
        try database.importPlain(from: file + "x", format: format)
      }
    }
    let damaged = try PlainFile(store, "damaged.sqlite", "CREATE TABLE settings(key, value)")
    for number in 0..<400 { try damaged.run("INSERT INTO settings VALUES ('k\(number)', zeroblob(200))") }
    var bytes = try Data(contentsOf: URL(fileURLWithPath: damaged.path))
    for offset in 3 * 4096..<5 * 4096 { bytes[offset] = 0xa5 }
    try bytes.write(to: URL(fileURLWithPath: damaged.path))
    let before = try database.storedItems()
    #expect(throws: CofferError.self) { try database.importPlain(from: damaged.path, format: .sqlite) }
    #expect(try database.storedItems() == before)
  }
}
