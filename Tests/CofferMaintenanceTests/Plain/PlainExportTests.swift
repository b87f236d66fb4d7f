import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Plain export") struct PlainExportTests {
  /// Values of every kind, with what other formats lose.
  static let values: [String: Value] = [
    "bool": true, "bool.false": false, "int": 42, "int.min": .int(.min), "int.max": .int(.max),
    "uint64": .uint64(.max), "uint64.least": .uint64(UInt64(Int64.max) + 1),
    "double": 12.34, "double.whole": 1.0, "double.zero": .double(-0.0), "double.nan": .double(.nan),
    "double.othernan": .double(Double(bitPattern: 0x7ff8_0000_0000_1234)), "double.inf": .double(.infinity),
    "double.minusinf": .double(-.infinity), "double.least": .double(.leastNonzeroMagnitude), "double.large": 1e300,
    "string": "dark", "string.empty": "", "string.nul": "a\0b", "string.composed": "e\u{301} 🗝", "string.digits": "007",
    "data": .data(Data([0, 1, 255])), "data.empty": .data(Data()), "data.text": .data(Data("text".utf8)),
    "date": .date(Date(timeIntervalSince1970: 1_769_848_200.25)),
    "date.fine": .date(Date(timeIntervalSinceReferenceDate: 812_345_678.901_234_5)), "date.past": .date(.distantPast),
    "date.inf": .date(Date(timeIntervalSinceReferenceDate: .infinity)),
    "date.nan": .date(Date(timeIntervalSinceReferenceDate: .nan)),
    "date.minuszero": .date(Date(timeIntervalSinceReferenceDate: -0.0)),
    "url": .url(URL(string: "https://example.org/a?b=c#d")!), "url.file": .url(URL(fileURLWithPath: "/tmp/x y")),
    "url.relative": .url(URL(string: "b/c", relativeTo: URL(string: "https://example.org/a/")!)!),
    "uuid": .uuid(UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")!),
    "array": ["a", 1, 2.5, 1.0, true, .null, ["x": [1]]], "array.empty": [],
    "array.data": [.data(Data([7])), .date(.distantFuture)], "array.zero": [.double(-0.0)],
    "array.uint64": [.uint64(.max), .int(.min)], "array.nan": [.double(.nan)], "array.digits": ["1", "2026-01-31"],
    "dict": ["b": 1, "a": ["c": .null]], "dict.empty": [:], "dict.uuid": ["u": .uuid(UUID())],
    "dict.canonical": ["\u{e9}": 1, "x": "e\u{301}"],
    "json": .json(#"{"ratio":-0,"of":[1,2]}"#), "json.text": .json("\"x\""),
  ]

  private func filled() throws -> (TemporaryStore, Database) {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { transaction in
      for (key, value) in Self.values {
        try transaction.setObject(value, forKey: key, inCollection: "all kinds")
        try transaction.setObject("x", forKey: key, inCollection: "größer/als", withMetadata: value)
      }
      try transaction.setObject("default", forKey: "in the default collection")
    }
    return (store, database)
  }

  @Test("round-trips values and metadata of every kind, bit for bit")
  func roundTrip() throws {
    let (store, database) = try filled()
    let path = store.folder + "/all.sqlite"
    #expect(try database.exportPlain(to: path) == 2 * Self.values.count + 1)
    let other = try Database.inMemory()
    let report = try other.importPlain(from: path, format: .sqlite)
    #expect(try other.storedItems() == database.storedItems())
    #expect(report.itemCount == 2 * Self.values.count + 1 && report.insertedCount == report.itemCount)
    #expect(report.collections == ["", "all kinds", "größer/als"] && report.opaqueCount == 0)
    // The same again changes nothing.
    #expect(try other.importPlain(from: path, format: .sqlite).unchangedCount == report.itemCount)
    try database.close()
  }

  @Test("keeps stored text that is not JSON, which an import refuses with its row")
  func textThatIsNotJSON() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject(Value.json("{}"), forKey: "spoilt") }
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE items SET data = x'7b' WHERE key = 'spoilt'")
    }
    let file = try PlainFile(store)
    #expect(try database.exportPlain(to: file.path) == 1)
    #expect(try file.shell("SELECT type, hex(value) FROM settings") == "json|7B")
    let error = #expect(throws: CofferError.self) {
      try Database.inMemory().importPlain(from: file.path, format: .sqlite)
    }
    #expect("\(error as Any)".contains("row 1, column value"))
    try database.close()
  }

  @Test("keeps expiries and due dates, to the millisecond and however far away")
  func dates() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let far = Date(timeIntervalSinceReferenceDate: .infinity)
    try database.makeConnection().readWrite { transaction in
      try transaction.setObject(1, forKey: "near", expires: Date(milliseconds: 4_102_444_800_001), due: .distantPast)
      try transaction.setObject(1, forKey: "far", expires: .distantFuture, due: far)
      try transaction.setObject(1, forKey: "stays", expires: nil)
    }
    let file = try PlainFile(store)
    try database.exportPlain(to: file.path)
    #expect(try file.shell("SELECT expires FROM settings WHERE key = 'near'") == "2100-01-01T00:00:00.001Z")
    let other = try Database.inMemory()
    _ = try other.importPlain(from: file.path, format: .sqlite)
    func dates(_ database: Database) throws -> [[Date?]] {
      try database.makeConnection().read { try $0.itemInfos().map { [$0.expires, $0.due] } }
    }
    #expect(try dates(other) == dates(database))
    try database.close()
  }

  @Test("is readable for people, with the sqlite3 shell")
  func readable() throws {
    let (store, database) = try filled()
    let file = try PlainFile(store)
    try database.exportPlain(to: file.path)
    func read(_ key: String, _ column: String = "value") throws -> String {
      try file.shell("SELECT \(column) FROM settings WHERE collection = 'all kinds' AND key = '\(key)'")
    }
    #expect(try read("int") == "42" && read("double.whole", "typeof(value)") == "real" && read("bool") == "1")
    #expect(try read("uint64") == "18446744073709551615" && read("uint64", "type") == "int")
    #expect(try read("double.nan") == "nan" && read("double.zero") == "-0.0")
    #expect(try read("date") == "2026-01-31T08:30:00.250Z" && read("date.fine", "typeof(value)") == "real")
    #expect(try read("url") == "https://example.org/a?b=c#d" && read("url.relative", "typeof(value)") == "blob")
    #expect(try read("uuid") == "6BA7B810-9DAD-11D1-80B4-00C04FD430C8" && read("dict") == #"{"a":{"c":null},"b":1}"#)
    #expect(try read("array") == #"["a",1,2.5,1.0,true,null,{"x":[1]}]"# && read("array", "type") == "array")
    #expect(try read("array.data", "typeof(value)") == "blob" && read("data", "hex(value)") == "0001FF")
    #expect(try file.shell("PRAGMA integrity_check") == "ok")
    try database.close()
  }

  @Test("writes the requested collections, mode 0600, and never over a file")
  func file() throws {
    let (store, database) = try filled()
    let file = try PlainFile(store)
    #expect(try database.exportPlain(to: file.path, collections: [""]) == 1)
    #expect(try file.shell("SELECT group_concat(key) FROM settings") == "in the default collection")
    var status = stat()
    #expect(stat(file.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file.path))
    #expect(throws: CofferError.fileExists(path: file.path)) { try database.exportPlain(to: file.path) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == bytes)
    struct Stop: Error {}
    #expect(throws: Stop.self) { try database.exportPlain(to: store.folder + "/other") { _ in throw Stop() } }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: store.folder).filter { !$0.hasPrefix("settings.coffer") }
        .sorted() == ["key", "plain.sqlite"])
    try database.close()
  }
}
