import Foundation
import GRDBSQLite

/// The functions of a build of SQLite.
struct SQLiteLibrary: Sendable {
  typealias Handle = OpaquePointer
  typealias Destructor = @convention(c) (UnsafeMutableRawPointer?) -> Void
  typealias Row =
    @convention(c) (
      UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
      UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    ) -> Int32

  let open:
    @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<Handle?>?, Int32, UnsafePointer<CChar>?) -> Int32
  let close: @convention(c) (Handle?) -> Int32
  let setBusyTimeout: @convention(c) (Handle?, Int32) -> Int32
  let control: @convention(c) (Handle?, UnsafePointer<CChar>?, Int32, UnsafeMutableRawPointer?) -> Int32
  let fillRandomly: @convention(c) (Int32, UnsafeMutableRawPointer?) -> Void
  let message: @convention(c) (Handle?) -> UnsafePointer<CChar>?
  let execute:
    @convention(c) (
      Handle?, UnsafePointer<CChar>?, Row?, UnsafeMutableRawPointer?,
      UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    ) -> Int32
  let prepare:
    @convention(c) (
      Handle?, UnsafePointer<CChar>?, Int32, UInt32, UnsafeMutablePointer<Handle?>?,
      UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) -> Int32
  let step: @convention(c) (Handle?) -> Int32
  let reset: @convention(c) (Handle?) -> Int32
  let finalize: @convention(c) (Handle?) -> Int32
  let bindText: @convention(c) (Handle?, Int32, UnsafePointer<CChar>?, UInt64, Destructor?, UInt8) -> Int32
  let bindBlob: @convention(c) (Handle?, Int32, UnsafeRawPointer?, UInt64, Destructor?) -> Int32
  let bindZeros: @convention(c) (Handle?, Int32, Int32) -> Int32
  let bindInteger: @convention(c) (Handle?, Int32, Int64) -> Int32
  let text: @convention(c) (Handle?, Int32) -> UnsafePointer<UInt8>?
  let blob: @convention(c) (Handle?, Int32) -> UnsafeRawPointer?
  let byteCount: @convention(c) (Handle?, Int32) -> Int32
  let integer: @convention(c) (Handle?, Int32) -> Int64
  let changeCount: @convention(c) (Handle?) -> Int32

  /// The system's.
  static let system = SQLiteLibrary(
    open: sqlite3_open_v2, close: sqlite3_close, setBusyTimeout: sqlite3_busy_timeout, control: sqlite3_file_control,
    fillRandomly: sqlite3_randomness, message: sqlite3_errmsg, execute: sqlite3_exec, prepare: sqlite3_prepare_v3,
    step: sqlite3_step, reset: sqlite3_reset, finalize: sqlite3_finalize, bindText: sqlite3_bind_text64,
    bindBlob: sqlite3_bind_blob64, bindZeros: sqlite3_bind_zeroblob, bindInteger: sqlite3_bind_int64,
    text: sqlite3_column_text, blob: sqlite3_column_blob, byteCount: sqlite3_column_bytes,
    integer: sqlite3_column_int64, changeCount: sqlite3_changes)
}

extension SQLiteLibrary {
  /// One that `Benchmarks/build-peers` has built, loaded dynamically: linked, its names would clash with the system's SQLite.
  init(named name: String) throws {
    var flags = RTLD_NOW | RTLD_LOCAL
    #if os(Linux)
      // RTLD_DEEPBIND: it must find its own functions under SQLite's names.
      flags |= 0x8
    #endif
    guard let library = dlopen(name, flags) else {
      throw Failure(reason: "\(name) cannot be loaded; `make bench` builds it")
    }
    func find<Function>(_ function: String, as type: Function.Type = Function.self) throws -> Function {
      guard let symbol = dlsym(library, function) else { throw Failure(reason: "\(name) has no \(function)") }
      return unsafeBitCast(symbol, to: type)
    }
    try self.init(
      open: find("sqlite3_open_v2"), close: find("sqlite3_close"), setBusyTimeout: find("sqlite3_busy_timeout"),
      control: find("sqlite3_file_control"), fillRandomly: find("sqlite3_randomness"),
      message: find("sqlite3_errmsg"), execute: find("sqlite3_exec"), prepare: find("sqlite3_prepare_v3"),
      step: find("sqlite3_step"), reset: find("sqlite3_reset"), finalize: find("sqlite3_finalize"),
      bindText: find("sqlite3_bind_text64"), bindBlob: find("sqlite3_bind_blob64"),
      bindZeros: find("sqlite3_bind_zeroblob"), bindInteger: find("sqlite3_bind_int64"),
      text: find("sqlite3_column_text"), blob: find("sqlite3_column_blob"), byteCount: find("sqlite3_column_bytes"),
      integer: find("sqlite3_column_int64"), changeCount: find("sqlite3_changes"))
  }
}

/// A connection to a database through a build of SQLite, for one thread.
protocol SQLiteUser {
  var name: String { get }
  var library: SQLiteLibrary { get }
  var handle: OpaquePointer { get }
}

extension SQLiteUser {
  func execute(_ sql: String) throws { try check(library.execute(handle, sql, nil, nil, nil)) }

  func prepare(_ sql: String) throws -> OpaquePointer? {
    var statement: OpaquePointer?
    try check(library.prepare(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
    return statement
  }

  func withUTF8<Result>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
    var text = text
    return try text.withUTF8(body)
  }

  /// Binds text that outlives the statement's next run; no copy is made.
  func bind(_ text: UnsafeBufferPointer<UInt8>, _ statement: OpaquePointer?, _ index: Int32) {
    text.withMemoryRebound(to: CChar.self) { text in
      _ = library.bindText(statement, index, text.baseAddress, UInt64(text.count), nil, UInt8(SQLITE_UTF8))
    }
  }

  /// Runs a statement that returns no row.
  func finish(_ statement: OpaquePointer?) throws {
    let code = library.step(statement)
    _ = library.reset(statement)
    try check(code)
  }

  func check(_ code: Int32) throws {
    guard code != SQLITE_OK, code != SQLITE_DONE else { return }
    let message = library.message(handle).map { String(cString: $0) }
    throw Failure(reason: "\(name) failed with \(code): \(message ?? "")")
  }
}

/// A build of SQLite that encrypts, and how it is used: by raw key, with its defaults.
enum CipherKind: String {
  case sqlCipher = "SQLCipher"
  case aegis = "SQLite3MC, AEGIS"
  case chaCha20 = "SQLite3MC, ChaCha20"

  private static let sqlCipherLibrary = Result { try SQLiteLibrary(named: "libsqlcipher-peer.so") }
  private static let multipleCiphersLibrary = Result { try SQLiteLibrary(named: "libsqlite3mc-peer.so") }

  func library() throws -> SQLiteLibrary {
    switch self {
    case .sqlCipher: try Self.sqlCipherLibrary.get()
    case .aegis, .chaCha20: try Self.multipleCiphersLibrary.get()
    }
  }

  /// The statements that give the key to a connection.
  ///
  /// - Parameter key: 64 hexadecimal digits.
  func statements(givingKey key: String) -> [String] {
    switch self {
    case .sqlCipher: ["PRAGMA key = \"x'\(key)'\""]
    case .aegis: ["PRAGMA cipher = 'aegis'", "PRAGMA key = 'raw:\(key)'"]
    case .chaCha20: ["PRAGMA cipher = 'chacha20'", "PRAGMA key = 'raw:\(key)'"]
    }
  }

  private var versionStatement: String {
    switch self {
    case .sqlCipher: "PRAGMA cipher_version"
    case .aegis, .chaCha20: "SELECT sqlite3mc_version()"
    }
  }

  /// Its version, and that of the SQLite in it.
  func version() throws -> String {
    let library = try library()
    var handle: OpaquePointer?
    guard library.open(":memory:", &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else {
      throw Failure(reason: "\(rawValue) does not open a database in memory")
    }
    defer { _ = library.close(handle) }
    func text(_ sql: String) throws -> String {
      var statement: OpaquePointer?
      _ = library.prepare(handle, sql, -1, 0, &statement, nil)
      defer { _ = library.finalize(statement) }
      guard library.step(statement) == SQLITE_ROW, let text = library.text(statement, 0) else {
        throw Failure(reason: "\(rawValue) does not know its version")
      }
      return String(cString: text)
    }
    return try "\(text(versionStatement)), with SQLite \(text("SELECT sqlite_version()"))"
  }
}

extension CipherKind {
  /// Writes a random key beside a new database.
  static func makeKey(of path: String) throws -> String {
    let key = (0..<32).map { _ in String(format: "%02x", UInt8.random(in: .min ... .max)) }.joined()
    try Data(key.utf8).write(to: keyFile(of: path))
    return key
  }

  /// The key of an existing database.
  static func key(of path: String) throws -> String { try String(contentsOf: keyFile(of: path), encoding: .utf8) }

  private static func keyFile(of path: String) -> URL { URL(fileURLWithPath: path + ".key") }
}
