import GRDB

/// GRDB, unencrypted, with a table of the same columns and no change log.
final class GRDBPeer: Peer, TextStore, Sendable {
  /// How to read.
  enum Reading {
    case oneByOne
    case inOneTransaction
  }

  let name: String
  private let pool: DatabasePool
  private let reading: Reading

  private static let integers = "integers"
  private static let select = "SELECT data FROM kv WHERE collection = ? AND key = ?"
  private static let upsert = """
    INSERT INTO kv VALUES (?1, ?2, ?3, NULL) ON CONFLICT DO UPDATE SET data = ?3, metadata = NULL
    """

  init(path: String, isNew: Bool = false) throws {
    name = "GRDB"
    reading = .oneByOne
    pool = try DatabasePool(path: path)
    if isNew { try create() }
  }

  /// The same database, read in a different way.
  init(_ other: GRDBPeer, reading: Reading) {
    name = reading == .inOneTransaction ? "GRDB, one transaction" : other.name
    pool = other.pool
    self.reading = reading
  }

  private func create() throws {
    try pool.write { database in
      try database.execute(
        sql: """
          CREATE TABLE kv(collection TEXT NOT NULL, key TEXT NOT NULL, data BLOB, metadata BLOB,
          PRIMARY KEY(collection, key)) WITHOUT ROWID
          """)
    }
  }

  // MARK: Reading

  private func add<Value: DatabaseValueConvertible & StatementColumnConvertible>(
    _ collection: String, _ keys: [String], _ summand: (Value) -> Int
  ) throws -> Int {
    var sum = 0
    func add(_ database: Database, _ key: String) throws {
      let value = try Value.fetchOne(database.cachedStatement(sql: Self.select), arguments: [collection, key])
      sum &+= value.map(summand) ?? 0
    }
    switch reading {
    case .oneByOne: for key in keys { try pool.read { try add($0, key) } }
    case .inOneTransaction: try pool.read { for key in keys { try add($0, key) } }
    }
    return sum
  }

  func sum(ofIntegersFor keys: [String]) throws -> Int {
    try add(Self.integers, keys) { (value: Int) in value }
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    try add(Samples.collection, keys) { (value: String) in value.utf8.count }
  }

  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int {
    try GRDBPeer(self, reading: .inOneTransaction).sum(ofLengthsFor: keys)
  }

  func scan() throws -> Int {
    try pool.read { database in
      var sum = 0
      let rows = try GRDB.Row.fetchCursor(database, sql: "SELECT key, data FROM kv")
      while let row = try rows.next() {
        let (key, text): (String, String) = (row[0], row[1])
        sum += key.utf8.count + text.utf8.count
      }
      return sum
    }
  }

  func text(_ key: String) throws -> String? {
    try pool.read {
      try String.fetchOne($0.cachedStatement(sql: Self.select), arguments: [Samples.collection, key])
    }
  }

  // MARK: Writing, in one transaction

  func set(integersFor keys: [String], from first: Int) throws {
    try pool.write { database in
      let statement = try database.cachedStatement(sql: Self.upsert)
      for (key, value) in zip(keys, first...) { try statement.execute(arguments: [Self.integers, key, value]) }
    }
  }

  func set(_ texts: [String], for keys: [String]) throws {
    try pool.write { database in
      let statement = try database.cachedStatement(sql: Self.upsert)
      for (key, text) in zip(keys, texts) { try statement.execute(arguments: [Samples.collection, key, text]) }
    }
  }

  func setSynchronization(_ synchronization: Synchronization) throws {
    try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = \(synchronization.rawValue)") }
  }

  /// Closes the database, which checkpoints its log.
  func close() throws {
    try pool.close()
  }
}
