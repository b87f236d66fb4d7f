import CSQLite
import CofferCrypto
import CofferStorage
import Foundation
import TestSupport

/// A store with one table, `kv(k, v)`, and a key of its own.
struct SmallStore {
  let folder: ScratchFolder
  let path: String
  let key: KeySource
  let vfs: EncryptingVFS

  /// - Parameter key: nil for a random one.
  init(rows: Int = 0, key: KeySource? = nil, vfs: EncryptingVFS = .standard) throws {
    folder = try ScratchFolder()
    path = folder.file("test.coffer")
    self.key = try key ?? .key(.random(count: 32))
    self.vfs = vfs
    try Store.create(at: path, key: self.key, vfs: vfs) { connection, _ in
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
    try contents(openedWith: key)
  }

  /// The same with another key.
  func contents(openedWith key: KeySource) throws -> [String] {
    let connection = try SQLiteConnection(store: Store.open(at: path, key: key, vfs: vfs), busyTimeout: .seconds(5))
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
      _ = try Child.run("/bin/cp", [path + suffix, copy.path + suffix])
    }
    return copy
  }

  /// The same files, opened by another VFS.
  init(sharing other: SmallStore, vfs: EncryptingVFS) {
    (folder, path, key) = (other.folder, other.path, other.key)
    self.vfs = vfs
  }

  private init(copying other: SmallStore, vfs: EncryptingVFS) throws {
    folder = try ScratchFolder()
    path = folder.file("test.coffer")
    key = other.key
    self.vfs = vfs
  }

  func overwrite(_ bytes: [UInt8], suffix: String = "") throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path + suffix))
  }
}

extension SQLiteConnection {
  /// Runs `body` in a write transaction of its own.
  func write(_ synchronization: Synchronization = .full, _ body: () throws -> Void) throws {
    try beginWrite(synchronization)
    do {
      try body()
      try commit()
    } catch {
      try? rollback()
      throw error
    }
  }

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
