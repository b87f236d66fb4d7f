import Coffer
import CofferCrypto
import CofferStorage

/// Plain SQLite, or the encrypted store: the same tables, through the same handle.
struct Competitor {
  /// Creates a database with empty tables.
  let create: (_ path: String) throws -> SQLiteConnection
  /// Opens an existing database.
  let open: (_ path: String) throws -> SQLiteConnection

  /// Coffer's own tables, and a collection.
  private static func fill(_ connection: SQLiteConnection) throws {
    try Schema.create(in: connection)
    try connection.execute("INSERT INTO collections(name) VALUES ('settings')")
  }

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
      try Self.fill(connection)
      return connection
    }
  }

  init(key: KeySource) {
    let open = { (path: String) in try SQLiteConnection(store: Store.open(at: path, key: key), busyTimeout: .zero) }
    self.open = open
    create = { path in
      try Store.create(at: path, key: key) { connection, _ in try Self.fill(connection) }
      return try open(path)
    }
  }
}
