import CSQLite
import CofferCrypto

/// Another program's SQLite database, opened read-only and not trusted: only ordinary tables are read, and no
/// expression in the file is evaluated.
///
/// Used by one thread at a time.
package final class ForeignDatabase {
  private let library: SQLiteLibrary
  private let handle: OpaquePointer
  private let path: String

  /// Opens the database at `path`.
  ///
  /// - Parameter passphrase: For a library with encryption.
  /// - Throws: `StorageError.wrongKeyForSource`, `.unreadable`, `.notFound`, `.permissionDenied` or `.busy`.
  package init(path: String, library: SQLiteLibrary = .system, passphrase: SecretBytes? = nil) throws {
    self.library = library
    self.path = path
    // The file and its log are opened here, by name.
    handle = try FileOwner(ofHandAt: path).acting { try Self.open(path, library, passphrase) }
  }

  private static func open(
    _ path: String, _ library: SQLiteLibrary, _ passphrase: SecretBytes?
  ) throws -> OpaquePointer {
    // With the rights that are acted with, unlike access(2).
    guard faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else { throw StorageError(errno: errno, path: path) }
    let isKeyed = passphrase != nil
    do {
      return try open(path, "mode=ro", library, passphrase)
    } catch StorageError.inputOutput where !isUnfinished(path) {
      // In a read-only folder, a database whose last writer left a log cannot be read with locks; without a log it
      // needs none (https://www.sqlite.org/wal.html, "Read-Only Databases").
      return try open(path, "immutable=1", library, passphrase)
    } catch StorageError.unreadable where isKeyed {
      // A file that does not decrypt is reported as "not a database".
      throw StorageError.wrongKeyForSource(path: path)
    }
  }

  deinit {
    _ = library.close(handle)
  }

  /// Whether there is a log or a rollback journal, without which the file alone is in another state, or in none.
  private static func isUnfinished(_ path: String) -> Bool {
    ["-wal", "-journal"].contains { suffix in
      var status = stat()
      return stat(path + suffix, &status) == 0 && status.st_size > 0
    }
  }

  private static func open(
    _ path: String, _ query: String, _ library: SQLiteLibrary, _ passphrase: SecretBytes?
  ) throws -> OpaquePointer {
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
    let uri = "file:\(SQLiteConnection.percentEncoded(path))?\(query)"
    let code = library.open(uri, &handle, flags, nil)
    guard let handle else { throw StorageError.inputOutput(path: path, reason: "out of memory") }
    do {
      try check(code, handle, library, path)
      // https://www.sqlite.org/security.html, "Untrusted SQLite database files"; older libraries ignore options they
      // lack.
      library.configure(handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
      library.configure(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
      library.configure(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
      library.configure(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0)
      library.limit(handle, isStore: false)
      _ = library.busyTimeout(handle, 5000)
      if let passphrase, let key = library.key {
        let code = passphrase.withUnsafeBytes { key(handle, $0.baseAddress, Int32(clamping: $0.count)) }
        try check(code, handle, library, path)
      }
      // The first read detects whether it is a database at all.
      try rows("SELECT count(*) FROM sqlite_master", handle, library, path) { _ in }
      return handle
    } catch {
      _ = library.close(handle)
      throw error
    }
  }

  // MARK: Reading

  /// The columns of an ordinary table; nil if it does not exist.
  ///
  /// - Throws: `StorageError.unreadable` for a view, a virtual table, and a table with computed columns.
  package func columns(ofTable table: String) throws -> [String]? {
    let isTable = try kind(of: table)
    guard let isTable else { return nil }
    guard isTable else { throw StorageError.unreadable(path: path, reason: "\(table) is not an ordinary table") }
    var names: [String] = []
    try query("PRAGMA table_info(\(table))") { names.append(Self.text($0[1])) }
    // Computed columns are missing there and listed here; libraries without them lack this pragma.
    var all: [String] = []
    try query("PRAGMA table_xinfo(\(table))") { all.append(Self.text($0[1])) }
    guard all.isEmpty || all == names else {
      throw StorageError.unreadable(path: path, reason: "\(table) has computed columns")
    }
    return names.map { $0.lowercased() }
  }

  /// Whether `table` is an ordinary table; nil if the name does not exist.
  private func kind(of table: String) throws -> Bool? {
    var found: Bool?
    try query("SELECT type, sql FROM sqlite_master WHERE lower(name) = '\(table)' AND type IN ('table', 'view')") {
      row in
      found = Self.text(row[0]) == "table" && !Self.text(row[1]).uppercased().hasPrefix("CREATE VIRTUAL")
    }
    return found
  }

  /// The number of rows of a table.
  package func count(ofTable table: String) throws -> Int {
    var count: Int64 = 0
    try query("SELECT count(*) FROM main.\(table) NOT INDEXED") { row in
      if case .integer(let value) = row[0] { count = value }
    }
    return Int(count)
  }

  /// Calls `body` with the requested columns of each row of a table.
  package func readRows(
    ofTable table: String, columns: [String], _ body: ([RecordColumn]) throws -> Void
  ) throws {
    let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
    try query("SELECT \(list) FROM main.\(table) NOT INDEXED", body)
  }

  private func query(_ sql: String, _ body: ([RecordColumn]) throws -> Void) throws {
    try Self.rows(sql, handle, library, path, body)
  }

  private static func rows(
    _ sql: String, _ handle: OpaquePointer, _ library: SQLiteLibrary, _ path: String,
    _ body: ([RecordColumn]) throws -> Void
  ) throws {
    var statement: OpaquePointer?
    try check(library.prepare(handle, sql, -1, &statement, nil), handle, library, path)
    defer { _ = library.finalize(statement) }
    while true {
      let code = library.step(statement)
      guard code == SQLITE_ROW else {
        try check(code, handle, library, path)
        return
      }
      try body((0..<library.columnCount(statement)).map { column(statement, $0, library) })
    }
  }

  private static func column(_ statement: OpaquePointer?, _ index: Int32, _ library: SQLiteLibrary) -> RecordColumn {
    switch library.columnType(statement, index) {
    case SQLITE_INTEGER: return .integer(library.integer(statement, index))
    case SQLITE_FLOAT: return .real(library.real(statement, index))
    case SQLITE_TEXT:
      let start = library.text(statement, index)
      let bytes = UnsafeBufferPointer(start: start, count: start == nil ? 0 : Int(library.byteCount(statement, index)))
      return .text(Array(bytes)[...])
    case SQLITE_BLOB:
      let start = library.blob(statement, index)
      let bytes = UnsafeRawBufferPointer(
        start: start, count: start == nil ? 0 : Int(library.byteCount(statement, index)))
      return .blob(Array(bytes)[...])
    default: return .null
    }
  }

  private static func text(_ column: RecordColumn) -> String {
    if case .text(let bytes) = column { String(decoding: bytes, as: UTF8.self) } else { "" }
  }

  // MARK: Errors

  private static func check(_ code: Int32, _ handle: OpaquePointer, _ library: SQLiteLibrary, _ path: String) throws {
    switch code & 0xff {
    case SQLITE_OK, SQLITE_ROW, SQLITE_DONE: return
    case SQLITE_BUSY, SQLITE_LOCKED: throw StorageError.busy
    case SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_IOERR, SQLITE_PERM, SQLITE_NOMEM:
      throw StorageError.inputOutput(path: path, reason: message(handle, library))
    default: throw StorageError.unreadable(path: path, reason: message(handle, library))
    }
  }

  private static func message(_ handle: OpaquePointer, _ library: SQLiteLibrary) -> String {
    library.message(handle).map { String(cString: $0) } ?? "SQLite failed"
  }
}
