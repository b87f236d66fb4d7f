import CofferCrypto
import CofferStorage

/// Plain SQLite, or the encrypted store: the same tables, through the same handle.
struct Competitor {
  /// Creates a database with empty tables.
  let create: (_ path: String) throws -> SQLiteConnection
  /// Opens an existing database.
  let open: (_ path: String) throws -> SQLiteConnection

  private static let schema = """
    CREATE TABLE collections(
      id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, flags INTEGER NOT NULL DEFAULT 0) STRICT;
    INSERT INTO collections(name) VALUES ('settings');
    CREATE TABLE items(collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
    modified INTEGER NOT NULL, type INTEGER NOT NULL, metadata BLOB, data BLOB NOT NULL, PRIMARY KEY(collection, key))
    STRICT, WITHOUT ROWID;
    CREATE TABLE changes(sequence INTEGER PRIMARY KEY, noise BLOB NOT NULL, time INTEGER NOT NULL,
    writer INTEGER NOT NULL, total INTEGER NOT NULL, keys BLOB NOT NULL) STRICT;
    """

  init(named name: String, keyFile: String) throws {
    switch name {
    case "plain": self.init()
    case "coffer":
      if !KeyFile.isPresent(at: keyFile) { try KeyFile.make(at: keyFile) }
      self.init(key: .keyFile(keyFile))
    default: fail("there is no competitor \(name)")
    }
  }

  private init() {
    open = { try SQLiteConnection(plainFileAt: $0) }
    create = { path in
      let connection = try SQLiteConnection(plainFileAt: path)
      try connection.execute(Self.schema)
      return connection
    }
  }

  init(key: KeySource) {
    let open = { (path: String) in try SQLiteConnection(store: Store.open(at: path, key: key), busyTimeout: .zero) }
    self.open = open
    create = { path in
      try Store.create(at: path, key: key) { connection, _ in try connection.execute(Self.schema) }
      return try open(path)
    }
  }
}
