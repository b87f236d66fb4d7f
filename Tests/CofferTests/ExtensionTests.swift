import Foundation
import Testing

@testable import Coffer

/// Other programs with the system's SQLite: its shell, and Python.
@Suite("The loadable extension") struct ExtensionTests {
  private let store: TemporaryStore
  private static let library = Child.products.appendingPathComponent("libCofferExtension").path

  init() throws {
    store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { transaction in
      for number in 0..<100 { try transaction.setObject("value \(number)", forKey: "key \(number)", inCollection: "c") }
    }
    try database.close()
  }

  private func uri(keyFile: String) -> String { "file:\(store.path)?vfs=coffer&keyfile=\(keyFile)" }

  private func shell(_ sql: String, keyFile: String? = nil) throws -> Child {
    try Child.run(
      "/usr/bin/env",
      [
        "sqlite3", "-bail", "-cmd", ".load \(Self.library)", ":memory:",
        ".open '\(uri(keyFile: keyFile ?? store.keyFile))'", sql,
      ])
  }

  @Test("lets the sqlite3 shell read a store, log included")
  func reads() throws {
    let sql = "SELECT count(*), min(key), max(CAST(data AS TEXT)) FROM items"
    #expect(try shell(sql).text == "100|key 0|value 99\n")
    // While a writer has commits in the log.
    let connection = try store.open().makeConnection()
    try connection.readWrite { try $0.setObject("zzz", forKey: "in the log", inCollection: "c") }
    #expect(try shell(sql).text == "101|in the log|zzz\n")
    #expect(try shell("PRAGMA integrity_check").text == "ok\n")
  }

  @Test("lets the sqlite3 shell read the log that a crash left")
  func crashedLog() throws {
    let connection = try store.open().makeConnection()
    try connection.readWrite { try $0.setObject("zzz", forKey: "in the log", inCollection: "c") }
    let crashed = try TemporaryStore()
    try store.copyAsAfterCrash(to: crashed)
    let child = try Child.run(
      "/usr/bin/env",
      [
        "sqlite3", "-bail", "-cmd", ".load \(Self.library)", ":memory:",
        ".open 'file:\(crashed.path)?vfs=coffer&keyfile=\(crashed.keyFile)'", "SELECT count(*) FROM items",
      ])
    #expect(child.text == "101\n")
    #expect(try crashed.bytes("-wal").count > 0)
  }

  @Test("lets nobody write, whose change log it would bypass")
  func readOnly() throws {
    let before = try store.bytes()
    for sql in ["DELETE FROM items", "CREATE TABLE t(x)", "PRAGMA user_version=9", "VACUUM"] {
      #expect(try shell(sql).status != 0, "\(sql)")
    }
    #expect(try store.bytes() == before)
  }

  @Test("leaves no file beside a store that nobody may write")
  func unwritable() throws {
    try #require(chmod(store.path, 0o400) == 0)
    #expect(try shell("SELECT count(*) FROM items").text == "100\n")
    #expect(try Set(FileManager.default.contentsOfDirectory(atPath: store.folder)) == ["settings.coffer", "key"])
  }

  @Test("opens nothing without the right key")
  func wrongKey() throws {
    let other = try TemporaryStore()
    for keyFile in [other.keyFile, "/nonexistent", store.path] {
      let child = try shell("SELECT * FROM items", keyFile: keyFile)
      #expect(child.status != 0)
      #expect(child.text.isEmpty)
    }
  }

  @Test("lets Python's sqlite3 read a store")
  func python() throws {
    // Some builds of Python cannot load extensions; they can still load a library.
    let program = """
      import ctypes, sqlite3, sys
      library, uri = sys.argv[1:]
      connection = sqlite3.connect(":memory:")
      if hasattr(connection, "enable_load_extension"):
          connection.enable_load_extension(True)
          connection.load_extension(library)
      else:
          ctypes.CDLL(library + ".so").sqlite3_cofferextension_init(None, None, None)
      print(sqlite3.connect(uri, uri=True).execute("SELECT key FROM items ORDER BY key LIMIT 2").fetchall())
      """
    let child = try Child.run(
      "/usr/bin/env", ["python3", "-c", program, Self.library, uri(keyFile: store.keyFile)])
    #expect(child.text == "[('key 0',), ('key 1',)]\n")
  }
}
