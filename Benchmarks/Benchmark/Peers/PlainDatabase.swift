import GRDBSQLite

/// SQLite through its C API, unencrypted or not: the statements of Coffer's transactions, and nothing else.
///
/// Tables and statements are those of Coffer's `Schema`, `Session` and `ChangeLog`, change log included. It is for one
/// thread.
final class PlainDatabase: TextStore, SQLiteUser {
  static let name = StoreKind.plain.rawValue

  private enum SQL: Int, CaseIterable {
    case begin, beginImmediate, commit, selectCollection, insertCollection, selectItem, selectAll, update, upsert,
      lastChange
    case insertChange, selectDroppedChange, setLogStart, dropChanges

    var text: String {
      switch self {
      case .begin: "BEGIN DEFERRED"
      case .beginImmediate: "BEGIN IMMEDIATE"
      case .commit: "COMMIT"
      case .selectCollection: "SELECT id, flags, history_count, history_age FROM collections WHERE name = ?"
      case .insertCollection: "INSERT INTO collections(name) VALUES (?) RETURNING id"
      case .selectItem:
        """
        SELECT type, data, metadata, expires, due FROM items
        WHERE collection = ? AND key = ? AND (expires IS NULL OR expires > ?)
        """
      case .selectAll: "SELECT key, type, data FROM items ORDER BY collection, key"
      case .update:
        """
        UPDATE items SET type = ?3, data = ?4, metadata = ?5, version = ?6, modified = ?7
        WHERE collection = ?1 AND key = ?2 AND (type <> ?3 OR data <> ?4 OR metadata IS NOT ?5)
          AND expires IS NULL AND due IS NULL AND author IS NULL
        """
      case .upsert:
        """
        INSERT INTO items VALUES (?1, ?2, ?6, ?7, ?3, NULL, NULL, NULL, ?5, ?4) ON CONFLICT DO UPDATE
        SET type = ?3, data = ?4, metadata = ?5, version = ?6, modified = ?7, expires = NULL, due = NULL, author = NULL
        WHERE type <> ?3 OR data <> ?4 OR metadata IS NOT ?5 OR expires IS NOT NULL OR due IS NOT NULL
        """
      case .lastChange: "SELECT sequence, total, link FROM changes ORDER BY sequence DESC LIMIT 1"
      case .insertChange: "INSERT INTO changes VALUES (?1, ?2, ?3, ?4, 'uid 0', ?5, ?7, NULL, ?7, ?6)"
      case .selectDroppedChange:
        """
        SELECT sequence, total, link FROM changes WHERE sequence < max(?1, (
          SELECT sequence FROM changes WHERE total >= ?2 ORDER BY sequence LIMIT 1)) ORDER BY sequence DESC LIMIT 1
        """
      case .setLogStart: "INSERT OR REPLACE INTO meta VALUES ('log_start', ?)"
      case .dropChanges: "DELETE FROM changes WHERE sequence <= ?"
      }
    }
  }

  private static let schema = """
    CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) STRICT, WITHOUT ROWID;
    CREATE TABLE collections(
      id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, flags INTEGER NOT NULL DEFAULT 0,
      history_count INTEGER, history_age INTEGER) STRICT;
    CREATE TABLE items(
      collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, modified INTEGER NOT NULL,
      type INTEGER NOT NULL, expires INTEGER, due INTEGER, author TEXT, metadata BLOB, data BLOB NOT NULL,
      PRIMARY KEY(collection, key)) STRICT, WITHOUT ROWID;
    CREATE INDEX items_by_expiry ON items(expires) WHERE expires IS NOT NULL;
    CREATE TABLE changes(
      sequence INTEGER PRIMARY KEY, noise BLOB NOT NULL, time INTEGER NOT NULL, writer INTEGER NOT NULL,
      author TEXT, total INTEGER NOT NULL, digest BLOB NOT NULL, action TEXT, link BLOB NOT NULL,
      keys BLOB NOT NULL) STRICT;
    """

  /// Known state as of a data version, as in Coffer.
  private struct Known {
    var dataVersion: UInt32
    var collection: Int64
    var sequence: Int64
    var total: Int64
  }

  let name: String
  let library: SQLiteLibrary
  let handle: OpaquePointer
  private var version: Int64 = 0
  /// Whether the last set of this transaction found its item.
  private var isUpdating = true
  private var known: Known?
  private var statements = [OpaquePointer?](repeating: nil, count: SQL.allCases.count)

  /// Opens the database at `path`, creating it if missing.
  convenience init(path: String, isNew: Bool = false) throws {
    try self.init(Self.name, .system, path, isNew: isNew, [])
  }

  /// The same, encrypted.
  convenience init(_ kind: CipherKind, path: String, key: String, isNew: Bool = false) throws {
    try self.init(kind.rawValue, kind.library(), path, isNew: isNew, kind.statements(givingKey: key))
  }

  /// - Parameter first: The statements before all others.
  private init(
    _ name: String, _ library: SQLiteLibrary, _ path: String, isNew: Bool, _ first: [String]
  ) throws {
    (self.name, self.library) = (name, library)
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    let code = library.open(path, &handle, flags, nil)
    guard code == SQLITE_OK, let handle else { throw Failure(reason: "SQLite failed with \(code)") }
    self.handle = handle
    // For the row with several writing processes.
    _ = library.setBusyTimeout(handle, 10_000)
    for statement in first { try execute(statement) }
    guard isNew else { return }
    try execute("PRAGMA journal_mode=WAL")
    try execute(Self.schema)
  }

  /// Closes the database, which checkpoints its log.
  func close() throws {
    for statement in statements { _ = library.finalize(statement) }
    statements = []
    try check(library.close(handle))
  }

  // MARK: Reading

  /// The text of a key in a transaction of its own, nil if there is none.
  func text(_ key: String) throws -> String? {
    try run(.begin)
    let text = try collectionID().flatMap { id in
      try withUTF8(key) { key in
        let select = try statement(.selectItem)
        _ = library.bindInteger(select, 1, id)
        bind(key, select, 2)
        _ = library.bindInteger(select, 3, 1_700_000_000_000)
        return try first(select) { select in
          let bytes = UnsafeRawBufferPointer(
            start: library.blob(select, 1), count: Int(library.byteCount(select, 1)))
          return String(decoding: bytes, as: UTF8.self)
        }
      }
    }
    try run(.commit)
    return text
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= try text(key)?.utf8.count ?? 0 }
    return sum
  }

  func scan() throws -> Int {
    let select = try statement(.selectAll)
    defer { _ = library.reset(select) }
    var sum = 0
    while true {
      let code = library.step(select)
      guard code == SQLITE_ROW else {
        try check(code)
        return sum
      }
      sum += Int(library.byteCount(select, 0) + library.byteCount(select, 2))
    }
  }

  private func collectionID() throws -> Int64? {
    try withUTF8(Samples.collection) { name in
      let select = try statement(.selectCollection)
      bind(name, select, 1)
      return try first(select) { library.integer($0, 0) }
    }
  }

  // MARK: Writing

  func setSynchronization(_ synchronization: Synchronization) throws {
    try execute("PRAGMA synchronous=\(synchronization.rawValue)")
  }

  /// Sets the texts of the keys in one transaction, with its row in the change log.
  ///
  /// - Parameter changes: The keys in that row; see `changes(of:)`.
  func set(_ texts: [String], for keys: [String], changes: [UInt8]) throws {
    try run(.beginImmediate)
    isUpdating = true
    var known = if let known, known.dataVersion == dataVersion { known } else { try readKnown() }
    for (key, text) in zip(keys, texts) { try set(text, for: key, in: known.collection) }
    known.sequence += 1
    known.total += Int64(changes.count)
    try append(changes, known.sequence, known.total)
    try run(.commit)
    known.dataVersion = dataVersion
    self.known = known
  }

  private var dataVersion: UInt32 {
    var version: UInt32 = 0
    _ = library.control(handle, "main", SQLITE_FCNTL_DATA_VERSION, &version)
    return version
  }

  private func readKnown() throws -> Known {
    let last = try first(statement(.lastChange)) { (library.integer($0, 0), library.integer($0, 1)) }
    return try Known(
      dataVersion: dataVersion, collection: collectionID() ?? makeCollection(), sequence: last?.0 ?? -1,
      total: last?.1 ?? 0)
  }

  func set(_ texts: [String], for keys: [String]) throws {
    try set(texts, for: keys, changes: keys.count > 1000 ? Self.unlisted : Self.changes(of: keys))
  }

  /// Coffer's change log entry for more keys than it lists.
  private static let unlisted: [UInt8] = [0, 1, 2, 0]

  /// Coffer's change log entry for the keys: a byte for the kind of change, the length, the key.
  static func changes(of keys: [String]) -> [UInt8] {
    [0, 1, 0] + keys.sorted().flatMap { [13, UInt8($0.utf8.count)] + Array($0.utf8) }
  }

  private func makeCollection() throws -> Int64 {
    try withUTF8(Samples.collection) { name in
      let insert = try statement(.insertCollection)
      bind(name, insert, 1)
      guard let id = try first(insert, { library.integer($0, 0) }) else {
        throw Failure(reason: "a new collection got no ID")
      }
      return id
    }
  }

  /// Like Coffer: an update first, as long as items exist.
  private func set(_ text: String, for key: String, in collection: Int64) throws {
    version += 1
    if isUpdating {
      try run(.update, text, key, collection)
      isUpdating = library.changeCount(handle) > 0
    }
    if !isUpdating { try run(.upsert, text, key, collection) }
  }

  private func run(_ sql: SQL, _ text: String, _ key: String, _ collection: Int64) throws {
    let statement = try statement(sql)
    try withUTF8(key) { key in
      try withUTF8(text) { text in
        _ = library.bindInteger(statement, 1, collection)
        bind(key, statement, 2)
        _ = library.bindInteger(statement, 3, 5)
        _ = library.bindBlob(statement, 4, text.baseAddress, UInt64(text.count), nil)
        _ = library.bindInteger(statement, 6, version)
        _ = library.bindInteger(statement, 7, 1_700_000_000_000)
        try finish(statement)
      }
    }
  }

  /// The noise stands for the link, too: to SQLite, both are 16 bytes that nothing compresses.
  private func append(_ changes: [UInt8], _ sequence: Int64, _ total: Int64) throws {
    var noise: (UInt64, UInt64) = (0, 0)
    library.fillRandomly(16, &noise)
    let insert = try statement(.insertChange)
    _ = library.bindInteger(insert, 1, sequence)
    _ = library.bindInteger(insert, 3, 1_700_000_000_000)
    _ = library.bindInteger(insert, 4, 1)
    _ = library.bindInteger(insert, 5, total)
    try withUnsafeBytes(of: &noise) { noise in
      try changes.withUnsafeBytes { changes in
        _ = library.bindBlob(insert, 2, noise.baseAddress, 16, nil)
        _ = library.bindBlob(insert, 6, changes.baseAddress, UInt64(changes.count), nil)
        _ = library.bindBlob(insert, 7, noise.baseAddress, 16, nil)
        try finish(insert)
      }
    }
    if sequence % 64 == 0 { try sweep(sequence, total) }
  }

  private func sweep(_ sequence: Int64, _ total: Int64) throws {
    let select = try statement(.selectDroppedChange)
    _ = library.bindInteger(select, 1, sequence - 10_000 + 1)
    _ = library.bindInteger(select, 2, total - 4 << 20)
    guard let dropped = try first(select, { library.integer($0, 0) }) else { return }
    // Sequence, total and link, as in Coffer.
    try run(.setLogStart) { _ = library.bindZeros($0, 1, 32) }
    try run(.dropChanges) { _ = library.bindInteger($0, 1, dropped) }
  }

  // MARK: Statements

  /// Prepared on first use.
  private func statement(_ sql: SQL) throws -> OpaquePointer? {
    if let statement = statements[sql.rawValue] { return statement }
    let statement = try prepare(sql.text)
    statements[sql.rawValue] = statement
    return statement
  }

  private func run(_ sql: SQL, _ bind: (OpaquePointer?) -> Void = { _ in }) throws {
    let statement = try statement(sql)
    bind(statement)
    try finish(statement)
  }

  /// The result of `body` for the first row, nil if there is none.
  private func first<Result>(_ statement: OpaquePointer?, _ body: (OpaquePointer?) -> Result) throws -> Result? {
    defer { _ = library.reset(statement) }
    switch library.step(statement) {
    case SQLITE_ROW: return body(statement)
    case let code:
      try check(code)
      return nil
    }
  }
}
