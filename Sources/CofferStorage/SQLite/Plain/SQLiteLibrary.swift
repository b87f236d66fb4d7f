import CSQLite

/// The functions of an SQLite library needed to read a database: from the library that the program is linked with, or
/// from one loaded on demand.
package final class SQLiteLibrary: Sendable {
  typealias Open =
    @convention(c) (
      UnsafePointer<CChar>?, UnsafeMutablePointer<OpaquePointer?>?, Int32, UnsafePointer<CChar>?
    ) -> Int32
  typealias Prepare =
    @convention(c) (
      OpaquePointer?, UnsafePointer<CChar>?, Int32, UnsafeMutablePointer<OpaquePointer?>?,
      UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) -> Int32
  typealias OnHandle = @convention(c) (OpaquePointer?) -> Int32
  typealias Key = @convention(c) (OpaquePointer?, UnsafeRawPointer?, Int32) -> Int32

  let open: Open
  let close: OnHandle
  let message: @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?
  let busyTimeout: @convention(c) (OpaquePointer?, Int32) -> Int32
  let prepare: Prepare
  let step: OnHandle
  let finalize: OnHandle
  let columnCount: OnHandle
  let columnType: @convention(c) (OpaquePointer?, Int32) -> Int32
  let integer: @convention(c) (OpaquePointer?, Int32) -> Int64
  let real: @convention(c) (OpaquePointer?, Int32) -> Double
  let text: @convention(c) (OpaquePointer?, Int32) -> UnsafePointer<UInt8>?
  let blob: @convention(c) (OpaquePointer?, Int32) -> UnsafeRawPointer?
  let byteCount: @convention(c) (OpaquePointer?, Int32) -> Int32
  private let setLimit: @convention(c) (OpaquePointer?, Int32, Int32) -> Int32
  /// Configures a connection, https://www.sqlite.org/c3ref/db_config.html.
  let configure: @Sendable (_ connection: OpaquePointer, _ option: Int32, _ value: Int32) -> Void
  /// Sets the passphrase; nil in a library without encryption.
  let key: Key?

  /// The library that the program is linked with.
  package static let system = SQLiteLibrary()

  private init() {
    open = sqlite3_open_v2
    close = sqlite3_close_v2
    message = sqlite3_errmsg
    busyTimeout = sqlite3_busy_timeout
    prepare = { sqlite3_prepare_v2($0, $1, $2, $3, $4) }
    step = sqlite3_step
    finalize = sqlite3_finalize
    columnCount = sqlite3_column_count
    columnType = sqlite3_column_type
    integer = sqlite3_column_int64
    real = sqlite3_column_double
    text = sqlite3_column_text
    blob = sqlite3_column_blob
    byteCount = sqlite3_column_bytes
    setLimit = sqlite3_limit
    configure = { _ = coffer_db_config_int($0, $1, $2) }
    key = nil
  }

  /// SQLCipher, loaded on first use; it stays loaded for the life of the process.
  ///
  /// - Throws: `StorageError.unsupported` if it is not installed.
  package static func sqlCipher() throws -> SQLiteLibrary {
    try SQLiteLibrary(named: ["libsqlcipher.so.0", "libsqlcipher.so.1", "libsqlcipher.dylib", "libsqlcipher.so"])
  }

  /// Bounds the cost of a database from an untrusted source; Coffer itself needs less
  /// (https://www.sqlite.org/security.html, "Untrusted SQL Inputs").
  ///
  /// - Parameter isStore: Whether the database has Coffer's schema alone. In another program's database SQLite parses
  ///   the whole schema, and a bound on that would keep the file from being read.
  func limit(_ connection: OpaquePointer, isStore: Bool) {
    for (limit, value) in Self.limits + (isStore ? Self.schemaLimits : []) { _ = setLimit(connection, limit, value) }
  }

  private static let limits: [(limit: Int32, value: Int32)] = [
    (SQLITE_LIMIT_VDBE_OP, 25_000),
    // VACUUM attaches the database that it creates.
    (SQLITE_LIMIT_ATTACHED, 1), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50), (SQLITE_LIMIT_VARIABLE_NUMBER, 20),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]

  private static let schemaLimits: [(limit: Int32, value: Int32)] = [
    (SQLITE_LIMIT_SQL_LENGTH, 100_000), (SQLITE_LIMIT_COLUMN, 100), (SQLITE_LIMIT_EXPR_DEPTH, 20),
    (SQLITE_LIMIT_COMPOUND_SELECT, 3), (SQLITE_LIMIT_FUNCTION_ARG, 8),
  ]

  init(named names: [String]) throws {
    var flags = RTLD_NOW | RTLD_LOCAL
    #if os(Linux) && canImport(Glibc)
      // RTLD_DEEPBIND: it exports SQLite's own names, and must resolve them to its own functions.
      flags |= 0x8
    #endif
    // It would bring another C library along.
    guard !LinkedLibraries.areInside else {
      throw StorageError.unsupported(
        reason: "this program has its libraries inside and cannot load SQLCipher's; use the package of your system")
    }
    guard let handle = names.lazy.compactMap({ dlopen($0, flags) }).first else {
      throw StorageError.unsupported(
        reason: "SQLCipher's library is not installed; on Debian and Ubuntu it is in the package libsqlcipher0 or "
          + "libsqlcipher1, on macOS run `brew install sqlcipher`")
    }
    func find<Function>(_ name: String, as type: Function.Type = Function.self) throws -> Function {
      guard let symbol = dlsym(handle, name) else {
        throw StorageError.unsupported(reason: "the installed SQLCipher has no \(name)")
      }
      return unsafeBitCast(symbol, to: type)
    }
    open = try find("sqlite3_open_v2")
    close = try find("sqlite3_close")
    message = try find("sqlite3_errmsg")
    busyTimeout = try find("sqlite3_busy_timeout")
    prepare = try find("sqlite3_prepare_v2")
    step = try find("sqlite3_step")
    finalize = try find("sqlite3_finalize")
    columnCount = try find("sqlite3_column_count")
    columnType = try find("sqlite3_column_type")
    integer = try find("sqlite3_column_int64")
    real = try find("sqlite3_column_double")
    text = try find("sqlite3_column_text")
    blob = try find("sqlite3_column_blob")
    byteCount = try find("sqlite3_column_bytes")
    setLimit = try find("sqlite3_limit")
    let configuration = try find("sqlite3_db_config", as: UInt.self)
    configure = { coffer_call_db_config(UnsafeMutableRawPointer(bitPattern: configuration), $0, $1, $2) }
    key = try find("sqlite3_key", as: Key.self)
  }
}
