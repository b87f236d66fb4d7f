import CSQLite
import CofferCrypto
import CofferStorage
import Foundation

/// A folder that is removed with this object.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}

/// A store with one table, `kv(k, v)`, and a key of its own.
struct SmallStore {
  let folder: TemporaryFolder
  let path: String
  let key: KeySource
  let vfs: EncryptingVFS

  init(rows: Int = 0, vfs: EncryptingVFS = .standard) throws {
    folder = try TemporaryFolder()
    path = folder.file("test.coffer")
    key = .key(try SecretBytes.random(count: 32))
    self.vfs = vfs
    try Store.create(at: path, key: key, vfs: vfs) { connection, _ in
      try connection.execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")
    }
    guard rows > 0 else { return }
    let connection = try connect()
    try connection.execute(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<\(rows)) "
        + "INSERT INTO kv SELECT 'key '||i, 'value '||i FROM n")
    try connection.close()
  }

  func connect(timeout: Duration = .seconds(5)) throws -> SQLiteConnection {
    try SQLiteConnection(store: Store.open(at: path, key: key, vfs: vfs), busyTimeout: timeout)
  }

  /// All rows as text, in order.
  func contents() throws -> [String] {
    let connection = try connect()
    defer { try? connection.close() }
    return try connection.contents()
  }

  /// The store's files by suffix, as they are on the disk.
  func bytes(_ suffix: String = "") throws -> [UInt8] {
    try Array(Data(contentsOf: URL(fileURLWithPath: path + suffix)))
  }

  /// Copies the store as a crash would leave it now, log included.
  ///
  /// Another program does it: closing a descriptor of the store in this process would drop SQLite's locks on it.
  ///
  /// - Parameter vfs: What the copy is opened with; nil for the same.
  func copyAsAfterCrash(vfs: EncryptingVFS? = nil) throws -> SmallStore {
    let copy = try SmallStore(copying: self, vfs: vfs ?? self.vfs)
    for suffix in ["", "-wal"] {
      let process = try Process.run(
        URL(fileURLWithPath: "/bin/cp"), arguments: [path + suffix, copy.path + suffix])
      process.waitUntilExit()
    }
    return copy
  }

  private init(copying other: SmallStore, vfs: EncryptingVFS) throws {
    folder = try TemporaryFolder()
    path = folder.file("test.coffer")
    key = other.key
    self.vfs = vfs
  }

  func overwrite(_ bytes: [UInt8], suffix: String = "") throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path + suffix))
  }
}

extension SQLiteConnection {
  func contents() throws -> [String] {
    var rows: [String] = []
    try statement("SELECT k, v FROM kv ORDER BY k").query { rows.append("\($0.text(0))=\($0.text(1))") }
    return rows
  }

  func set(_ key: String, _ value: String) throws {
    let statement = try statement("INSERT OR REPLACE INTO kv VALUES (?, ?)")
    statement.bind(key, at: 1)
    statement.bind(Array(value.utf8), at: 2)
    try statement.run()
  }
}
