import Foundation
import GRDBSQLite

/// SQLCipher with a raw key, through its C API, with GRDB's table and no change log; for one thread.
///
/// Its settings are its defaults except for the page size, 1,024 bytes in version 3: here it is 4,096, as elsewhere. Its
/// statements work with the SQLite of version 3, which has no upsert.
final class SQLCipherPeer: Peer, TextStore {
  let name = "SQLCipher"
  private let library: SQLCipherLibrary
  private let handle: OpaquePointer
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
  convenience init(creating path: String) throws {
    let key = Self.randomKey()
    try Data(key.utf8).write(to: Self.keyFile(of: path))
    try self.init(path: path, key: key, isNew: true)
  }

  /// The key of an existing database.
  static func key(of path: String) throws -> String { try String(contentsOf: keyFile(of: path), encoding: .utf8) }

  private static func keyFile(of path: String) -> URL { URL(fileURLWithPath: path + ".key") }

  init(path: String, key: String, isNew: Bool = false) throws {
    library = try SQLCipherLibrary.shared.get()
    var handle: OpaquePointer?
    let code = library.open(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let handle else { throw Failure(reason: "SQLCipher failed with \(code)") }
    self.handle = handle
    try execute("PRAGMA key = \"x'\(key)'\"")
    try execute("PRAGMA cipher_page_size = 4096")
    statements = [OpaquePointer?](repeating: nil, count: SQL.allCases.count)
    guard isNew else { return }
    try execute("PRAGMA journal_mode = WAL")
    try execute(Self.schema)
  }

  private static func randomKey() -> String {
    (0..<32).map { _ in String(format: "%02x", UInt8.random(in: .min ... .max)) }.joined()
  }

  /// Closes the database, which checkpoints its log.
  func close() throws {
    for statement in statements where statement != nil { _ = library.finalize(statement) }
    statements = []
    try check(library.close(handle))
  }

  static func version() throws -> String {
    let library = try SQLCipherLibrary.shared.get()
    var handle: OpaquePointer?
    guard library.open(":memory:", &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else {
      throw Failure(reason: "SQLCipher does not open a database in memory")
    }
    defer { _ = library.close(handle) }
    var statement: OpaquePointer?
    _ = library.prepare(handle, "PRAGMA cipher_version", -1, &statement, nil)
    defer { _ = library.finalize(statement) }
    guard library.step(statement) == SQLITE_ROW, let text = library.text(statement, 0) else {
      throw Failure(reason: "SQLCipher does not know its version")
    }
    return String(cString: text)
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

  private func execute(_ sql: String) throws { try check(library.execute(handle, sql, nil, nil, nil)) }

  /// Prepared on first use.
  private func statement(_ sql: SQL) throws -> OpaquePointer? {
    if let statement = statements[sql.rawValue] { return statement }
    var statement: OpaquePointer?
    try check(library.prepare(handle, sql.text, -1, &statement, nil))
    statements[sql.rawValue] = statement
    return statement
  }

  private func withUTF8<Result>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows
    -> Result
  {
    var text = text
    return try text.withUTF8(body)
  }

  /// Binds text that outlives the statement's next run; no copy is made.
  private func bind(_ text: UnsafeBufferPointer<UInt8>, _ statement: OpaquePointer?, _ index: Int32) {
    text.withMemoryRebound(to: CChar.self) { text in
      _ = library.bindText(statement, index, text.baseAddress, Int32(text.count), nil)
    }
  }

  /// Runs a statement that returns no row.
  private func finish(_ statement: OpaquePointer?) throws {
    let code = library.step(statement)
    _ = library.reset(statement)
    try check(code)
  }

  private func check(_ code: Int32) throws {
    guard code != SQLITE_OK, code != SQLITE_DONE else { return }
    let message = library.message(handle).map { String(cString: $0) }
    throw Failure(reason: "SQLCipher failed with \(code): \(message ?? "")")
  }
}
