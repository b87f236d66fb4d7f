import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

@Suite("Import from YapDatabase") struct YapImportTests {
  private static let table = """
    CREATE TABLE "database2" ("rowid" INTEGER PRIMARY KEY, "collection" CHAR NOT NULL, "key" CHAR NOT NULL,
      "data" BLOB, "metadata" BLOB);
    CREATE UNIQUE INDEX "true_primary_key" ON "database2" ("collection", "key");
    """

  private func archive(_ object: Any) throws -> [UInt8] {
    try Array(NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false))
  }

  private func insert(_ key: String, _ data: [UInt8], _ metadata: [UInt8]? = nil, into file: PlainFile) throws {
    try file.run("INSERT INTO database2(collection, key, data, metadata) VALUES ('c', '\(key)', ?, ?)", data, metadata)
  }

  @Test("converts archives, property lists and JSON to their values, and keeps the rest as data")
  func serializers() throws {
    let store = try TemporaryStore()
    let file = try PlainFile(store, "yap.sqlite", Self.table)
    let uuid = UUID()
    let date = Date(timeIntervalSinceReferenceDate: 123.456)
    let known: [(String, [UInt8], Value)] = [
      ("string", try archive("text" as NSString), "text"),
      ("number", try archive(NSNumber(value: 42)), 42),
      ("real", try archive(NSNumber(value: 2.5)), 2.5),
      ("bool", try archive(NSNumber(value: true)), true),
      ("data", try archive(Data([1, 2]) as NSData), .data(Data([1, 2]))),
      ("date", try archive(date as NSDate), .date(date)),
      ("url", try archive(URL(string: "https://example.org/a")! as NSURL), .url(URL(string: "https://example.org/a")!)),
      ("uuid", try archive(uuid as NSUUID), .uuid(uuid)),
      (
        "dictionary", try archive(["a": [1, "b"], "n": NSNull(), "d": date] as NSDictionary),
        ["a": [1, "b"], "n": .null, "d": .date(date)]
      ),
      ("plist", try Array(PropertyListEncoder().encode(["x": [1, 2]])), ["x": [1, 2]]),
      ("json", Array(#"{"a": [1, 2.5, null]}"#.utf8), ["a": [1, 2.5, .null]]),
    ]
    for (key, bytes, _) in known { try insert(key, bytes, known[0].1, into: file) }
    let opaque: [(String, [UInt8])] = [
      ("other class", try archive(NSSet(array: [1]))), ("bytes", [0, 1, 2, 3]), ("empty", []),
      ("null", try archive(NSNull())), ("torn", Array(try archive("text" as NSString).dropLast(9))),
    ]
    for (key, bytes) in opaque { try insert(key, bytes, into: file) }

    let database = try store.open()
    let report = try database.importPlain(from: file.path, format: .yapDatabase)
    #expect(report.itemCount == known.count + opaque.count && report.opaqueCount == opaque.count)
    try database.makeConnection().read { transaction in
      for (key, _, value) in known {
        let item = try transaction.item(forKey: key, inCollection: "c")
        #expect(item?.value == value && item?.metadata == "text", "\(key): \(String(describing: item))")
      }
      for (key, bytes) in opaque {
        let item = try transaction.item(forKey: key, inCollection: "c")
        #expect(item?.value == .data(Data(bytes)) && item?.metadata == nil, "\(key)")
      }
    }
    try database.close()
  }

  @Test("neither crashes nor hangs on archives that refer to themselves, or to the same object many times")
  func crafted() throws {
    func archive(_ objects: [Any]) throws -> [UInt8] {
      let list: [String: Any] = [
        "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": ["root": ["CF$UID": 1]],
        "$objects": ["$null"] + objects,
      ]
      return try Array(PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0))
    }
    let array = ["$classname": "NSArray", "$classes": ["NSArray", "NSObject"]] as [String: Any]
    let itself: [String: Any] = ["$class": ["CF$UID": 2], "NS.objects": [["CF$UID": 1]]]
    #expect(YapValue(try archive([itself, array])).isOpaque)
    // Sixty lists, each with the next one ten times.
    let lists = (3..<63).map { number in
      ["$class": ["CF$UID": 2], "NS.objects": [[String: Int]](repeating: ["CF$UID": number + 1], count: 10)]
    }
    #expect(YapValue(try archive([lists[0], array] + lists + ["end"])).isOpaque)
    #expect(YapValue(try archive([["$class": ["CF$UID": 99]]])).isOpaque)
  }

  @Test("names the library that is missing")
  func missingLibrary() {
    let error = #expect(throws: StorageError.self) { try SQLiteLibrary(named: ["libnothing-of-the-kind.so"]) }
    guard case .unsupported(let reason)? = error else { return }
    #expect(reason.contains("libsqlcipher0"))
  }
}

/// Needs SQLCipher's library and shell, which `make test-deps` installs.
@Suite(
  "Import from SQLCipher",
  .enabled(if: (try? SQLiteLibrary.sqlCipher()) != nil, "SQLCipher is not installed here; make test-deps does that"))
struct SQLCipherImportTests {
  private func encrypted(_ store: TemporaryStore, _ sql: String) throws -> String {
    let path = store.folder + "/cipher.db"
    let child = try Child.run("/usr/bin/env", ["sqlcipher", path, "PRAGMA key = 'correct horse'; \(sql)"])
    try #require(child.status == 0)
    return path
  }

  private let passphrase = PlainImportFormat.sqlCipher(passphrase: SecretBytes(copying: "correct horse"))

  @Test("finds settings, and the tables of YapDatabase")
  func layouts() throws {
    for sql in [
      "CREATE TABLE settings(collection, key, value); INSERT INTO settings VALUES ('c', 'k', '[1]')",
      "CREATE TABLE database2(rowid INTEGER PRIMARY KEY, collection, key, data BLOB, metadata BLOB);"
        + "INSERT INTO database2 VALUES (1, 'c', 'k', x'22742220', NULL)",
    ] {
      let store = try TemporaryStore()
      let path = try encrypted(store, sql)
      #expect(try !Data(contentsOf: URL(fileURLWithPath: path)).starts(with: Data("SQLite".utf8)))
      let database = try store.open()
      #expect(try database.importPlain(from: path, format: passphrase).insertedCount == 1)
      let value = try database.makeConnection().read { try $0.value(forKey: "k", inCollection: "c") }
      #expect(value == "[1]" || value == "t")
      // The library's functions have not taken the place of the others.
      #expect(try database.verify().problems.isEmpty)
      try database.close()
    }
  }

  @Test("detects a wrong passphrase, and a file that is not encrypted")
  func wrong() throws {
    let store = try TemporaryStore()
    let path = try encrypted(store, "CREATE TABLE settings(key, value)")
    let database = try store.open()
    #expect(throws: CofferError.wrongKeyForSource(path: path)) {
      try database.importPlain(from: path, format: .sqlCipher(passphrase: SecretBytes(copying: "other")))
    }
    #expect(throws: CofferError.malformedSettings(source: path, reason: "file is not a database")) {
      try database.importPlain(from: path, format: .sqlite)
    }
    let plain = try PlainFile(store, "p.sqlite", "CREATE TABLE settings(key, value)").path
    #expect(throws: CofferError.wrongKeyForSource(path: plain)) {
      try database.importPlain(from: plain, format: passphrase)
    }
    try database.close()
  }
}
