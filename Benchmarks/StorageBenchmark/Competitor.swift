import CofferCrypto
import CofferStorage
import Foundation

/// Plain SQLite, or the encrypted store: the same tables, through the same handle.
struct Competitor {
  let name: String
  /// Opens the database at a path, creating it the first time.
  let open: (_ path: String) throws -> SQLiteConnection

  private static let schema = """
    CREATE TABLE items(collection INTEGER NOT NULL, key TEXT NOT NULL, type INTEGER NOT NULL, data BLOB NOT NULL,
    metadata BLOB, version INTEGER NOT NULL, modified INTEGER NOT NULL, PRIMARY KEY(collection, key))
    STRICT, WITHOUT ROWID;
    CREATE TABLE changes(sequence INTEGER PRIMARY KEY, noise BLOB NOT NULL, time INTEGER NOT NULL,
    writer INTEGER NOT NULL, total INTEGER NOT NULL, keys BLOB NOT NULL) STRICT;
    """

  static func all() throws -> [Competitor] {
    let key = KeySource.key(try SecretBytes.random(count: 32))
    return [
      Competitor(name: "plain SQLite") { path in
        let isNew = !FileManager.default.fileExists(atPath: path)
        let connection = try SQLiteConnection(plainFileAt: path)
        if isNew { try connection.execute(schema) }
        return connection
      },
      Competitor(name: "Coffer") { path in
        if !FileManager.default.fileExists(atPath: path) {
          try Store.create(at: path, key: key) { connection, _ in try connection.execute(schema) }
        }
        return try SQLiteConnection(store: Store.open(at: path, key: key), busyTimeout: .zero)
      },
    ]
  }

  func remove(_ path: String) throws {
    for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
  }
}
