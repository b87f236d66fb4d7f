import Foundation
import GRDBSQLite

/// A build of SQLite that encrypts, through its C API, with GRDB's table and no change log; for one thread.
final class CipherPeer: Peer, TextStore, SQLiteUser {
  let name: String
  let library: SQLiteLibrary
  let handle: OpaquePointer
  private var statements: [OpaquePointer?] = []
  /// Whether the last key existed already: then the next one probably does, too.
  private var updatesFirst = false

  private enum SQL: Int, CaseIterable {
    case begin, beginReading, commit, select, selectAll, insert, update

    var text: String {
      switch self {
      case .begin: "BEGIN IMMEDIATE"
      case .beginReading: "BEGIN DEFERRED"
      case .commit: "COMMIT"
      case .select: "SELECT data FROM kv WHERE collection = ? AND key = ?"
      case .selectAll: "SELECT key, data FROM kv"
      // `OR REPLACE` would copy each page to a statement journal first.
      case .insert: "INSERT OR IGNORE INTO kv VALUES (?1, ?2, ?3, NULL)"
      case .update: "UPDATE kv SET data = ?3, metadata = NULL WHERE collection = ?1 AND key = ?2"
      }
    }
  }

  private static let integers = "integers"
  private static let schema = """
    CREATE TABLE kv(collection TEXT NOT NULL, key TEXT NOT NULL, data, metadata BLOB,
    PRIMARY KEY(collection, key)) WITHOUT ROWID
    """

  /// Creates a database at `path`, with its key beside it.
  convenience init(_ kind: CipherKind, creating path: String) throws {
    try self.init(kind, path: path, key: CipherKind.makeKey(of: path), isNew: true)
  }

  init(_ kind: CipherKind, path: String, key: String, isNew: Bool = false) throws {
    (name, library) = (kind.rawValue, try kind.library())
    var handle: OpaquePointer?
    let code = library.open(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let handle else { throw Failure(reason: "\(kind.rawValue) failed with \(code)") }
    self.handle = handle
    for statement in kind.statements(givingKey: key) { try execute(statement) }
    statements = [OpaquePointer?](repeating: nil, count: SQL.allCases.count)
    guard isNew else { return }
    try execute("PRAGMA journal_mode = WAL")
    try execute(Self.schema)
  }

  /// Closes the database, which checkpoints its log.
  func close() throws {
    for statement in statements where statement != nil { _ = library.finalize(statement) }
    statements = []
    try check(library.close(handle))
  }

  // MARK: Reading

  func text(_ key: String) throws -> String? {
    try select(Samples.collection, key) { self.text($0, 0) }
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= try text(key)?.utf8.count ?? 0 }
    return sum
  }

  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int {
    try finish(statement(.beginReading))
    let sum = try sum(ofLengthsFor: keys)
    try finish(statement(.commit))
    return sum
  }

  func sum(ofIntegersFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= try select(Self.integers, key) { library.integer($0, 0) }.map(Int.init) ?? 0 }
    return sum
  }

  func scan() throws -> Int {
    let statement = try statement(.selectAll)
    defer { _ = library.reset(statement) }
    var sum = 0
    while true {
      let code = library.step(statement)
      guard code == SQLITE_ROW else {
        try check(code)
        return sum
      }
      sum += text(statement, 0).utf8.count + text(statement, 1).utf8.count
    }
  }

  private func select<Result>(
    _ collection: String, _ key: String, _ body: (OpaquePointer?) -> Result
  ) throws -> Result? {
    let statement = try statement(.select)
    defer { _ = library.reset(statement) }
    return try withUTF8(collection) { collection in
      try withUTF8(key) { key in
        bind(collection, statement, 1)
        bind(key, statement, 2)
        let code = library.step(statement)
        guard code == SQLITE_ROW else {
          try check(code)
          return nil
        }
        return body(statement)
      }
    }
  }

  private func text(_ statement: OpaquePointer?, _ column: Int32) -> String {
    let bytes = UnsafeBufferPointer(
      start: library.text(statement, column), count: Int(library.byteCount(statement, column)))
    return String(decoding: bytes, as: UTF8.self)
  }

  // MARK: Writing, in one transaction

  func setSynchronization(_ synchronization: Synchronization) throws {
    try execute("PRAGMA synchronous = \(synchronization.rawValue)")
  }

  func set(_ texts: [String], for keys: [String]) throws {
    try set(in: Samples.collection, keys) { index, statement in
      try withUTF8(texts[index]) { text in
        bind(text, statement, 3)
        try finish(statement)
      }
    }
  }

  func set(integersFor keys: [String], from first: Int) throws {
    try set(in: Self.integers, keys) { index, statement in
      try check(library.bindInteger(statement, 3, Int64(first + index)))
      try finish(statement)
    }
  }

  /// - Parameter run: Binds the value of the key with this index, and runs the statement.
  private func set(
    in collection: String, _ keys: [String], _ run: (_ index: Int, _ statement: OpaquePointer?) throws -> Void
  ) throws {
    try finish(statement(.begin))
    let (insert, update) = (try statement(.insert), try statement(.update))
    try withUTF8(collection) { collection in
      for (index, key) in keys.enumerated() {
        try withUTF8(key) { key in
          for isUpdate in [updatesFirst, !updatesFirst] {
            let statement = isUpdate ? update : insert
            bind(collection, statement, 1)
            bind(key, statement, 2)
            try run(index, statement)
            guard library.changeCount(handle) > 0 else { continue }
            updatesFirst = isUpdate
            break
          }
        }
      }
    }
    try finish(statement(.commit))
  }

  // MARK: Statements

  /// Prepared on first use.
  private func statement(_ sql: SQL) throws -> OpaquePointer? {
    if let statement = statements[sql.rawValue] { return statement }
    let statement = try prepare(sql.text)
    statements[sql.rawValue] = statement
    return statement
  }
}
