import CofferStorage
import Foundation
import TestSupport
import Testing

/// Other programs with the system's SQLite: its shell, and Python.
@Suite("The loadable extension") struct ExtensionTests {
  private let store: SmallStore
  private let keys: ScratchFolder
  private var keyFile: String { keys.file("key") }
  private static let library = Child.products.appendingPathComponent("libCofferExtension").path

  init() throws {
    keys = try ScratchFolder()
    try KeyFile.create(at: keys.file("key"))
    store = try SmallStore(rows: 100, key: .keyFile(keys.file("key")))
  }

  private func uri(of store: SmallStore, keyFile: String) -> String {
    "file:\(store.path)?vfs=coffer&keyfile=\(keyFile)"
  }

  private func shell(_ sql: String, of other: SmallStore? = nil, keyFile: String? = nil) throws -> Child {
    try Child.run(
      "/usr/bin/env",
      [
        "sqlite3", "-bail", "-cmd", ".load \(Self.library)", ":memory:",
        ".open '\(uri(of: other ?? store, keyFile: keyFile ?? self.keyFile))'", sql,
      ])
  }

  @Test("lets the sqlite3 shell read a store, log included")
  func reads() throws {
    let sql = "SELECT count(*), min(k), max(CAST(v AS TEXT)) FROM kv"
    #expect(try shell(sql).text == "100|key 1|value 99\n")
    // While a writer has commits in the log.
    let connection = try store.connect()
    try connection.write { try connection.set("in the log", "zzz") }
    #expect(try shell(sql).text == "101|in the log|zzz\n")
    #expect(try shell("PRAGMA integrity_check").text == "ok\n")
    try connection.close()
  }

  @Test("lets the sqlite3 shell read the log left by a crash")
  func crashedLog() throws {
    let connection = try store.connect()
    try connection.write { try connection.set("in the log", "zzz") }
    let crashed = try store.copyAsAfterCrash()
    #expect(try shell("SELECT count(*) FROM kv", of: crashed).text == "101\n")
    #expect(try crashed.bytes("-wal").count > 0)
    try connection.close()
  }

  @Test("allows no writes, which would bypass the change log")
  func readOnly() throws {
    let before = try store.bytes()
    for sql in ["DELETE FROM kv", "CREATE TABLE t(x)", "PRAGMA user_version=9", "VACUUM"] {
      #expect(try shell(sql).status != 0, "\(sql)")
    }
    #expect(try store.bytes() == before)
  }

  @Test("leaves no file beside a store that cannot be written")
  func unwritable() throws {
    try #require(chmod(store.path, 0o400) == 0)
    #expect(try shell("SELECT count(*) FROM kv").text == "100\n")
    #expect(try Set(FileManager.default.contentsOfDirectory(atPath: store.folder.path)) == ["test.coffer"])
  }

  @Test("opens nothing without the right key")
  func wrongKey() throws {
    try KeyFile.create(at: keys.file("other"))
    for keyFile in [keys.file("other"), "/nonexistent", store.path] {
      let child = try shell("SELECT * FROM kv", keyFile: keyFile)
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
      print(sqlite3.connect(uri, uri=True).execute("SELECT k FROM kv ORDER BY k LIMIT 2").fetchall())
      """
    let child = try Child.run(
      "/usr/bin/env", ["python3", "-c", program, Self.library, uri(of: store, keyFile: keyFile)])
    #expect(child.text == "[('key 1',), ('key 10',)]\n")
  }
}
