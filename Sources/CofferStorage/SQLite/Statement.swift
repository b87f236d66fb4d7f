import CSQLite
import CofferCrypto

/// A prepared statement of a connection, which finalizes it before closing.
///
/// A struct without reference counting, which showed up in profiles of flushes and enumerations.
///
/// `bind` copies its argument, except `bind(borrowing:at:)` and `bind(borrowingText:at:)`: those bytes must stay in
/// place until the next `reset`. `run`, `query` and `first` reset; after `step`, the user of the statement must.
package struct Statement {
  private let pointer: OpaquePointer
  private let connection: Unmanaged<SQLiteConnection>

  init(pointer: OpaquePointer, connection: SQLiteConnection) {
    self.pointer = pointer
    self.connection = Unmanaged.passUnretained(connection)
  }

  func finalize() {
    connection._withUnsafeGuaranteedRef { $0.forgetFailedBindings(of: pointer) }
    sqlite3_finalize(pointer)
  }

  // MARK: Parameters

  package func bind(_ value: Int64, at index: Int32) {
    note(sqlite3_bind_int64(pointer, index, value))
  }

  package func bind(real value: Double, at index: Int32) {
    note(sqlite3_bind_double(pointer, index, value))
  }

  package func bind(_ value: String, at index: Int32) {
    var value = value
    value.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in
        // An empty buffer may have a nil address, which would bind NULL.
        note(coffer_bind_text(pointer, index, text.baseAddress ?? UnsafePointer(emptyText), UInt64(text.count)))
      }
    }
  }

  /// Binds the bytes as text; they may end in the middle of a character.
  package func bind(text bytes: [UInt8], at index: Int32) {
    bytes.withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in
        note(coffer_bind_text(pointer, index, text.baseAddress ?? UnsafePointer(emptyText), UInt64(text.count)))
      }
    }
  }

  package func bind(_ value: [UInt8]?, at index: Int32) {
    guard let value else { return note(sqlite3_bind_null(pointer, index)) }
    value.withUnsafeBytes { note(coffer_bind_blob(pointer, index, $0.baseAddress, UInt64($0.count))) }
  }

  package func bind(copying bytes: UnsafeRawBufferPointer, at index: Int32) {
    note(coffer_bind_blob(pointer, index, bytes.baseAddress, UInt64(bytes.count)))
  }

  /// Binds bytes without copying; nothing may throw between here and the run.
  package func bind(borrowing bytes: UnsafeRawBufferPointer, at index: Int32) {
    note(coffer_bind_blob_static(pointer, index, bytes.baseAddress, UInt64(bytes.count)))
  }

  /// Binds text without copying; nothing may throw between here and the run.
  package func bind(borrowingText bytes: UnsafeBufferPointer<UInt8>, at index: Int32) {
    bytes.withMemoryRebound(to: CChar.self) { text in
      note(coffer_bind_text_static(pointer, index, text.baseAddress ?? UnsafePointer(emptyText), UInt64(text.count)))
    }
  }

  /// Binds values to the first parameters, in order; nil is NULL.
  func bind(_ values: [(any StatementValue)?]) {
    for (index, value) in values.enumerated() { value?.bind(to: self, at: Int32(index + 1)) }
  }

  /// A failed binding (a value beyond SQLite's limits) is reported by the next step.
  @inline(__always)
  private func note(_ code: Int32) {
    if code != SQLITE_OK { connection._withUnsafeGuaranteedRef { $0.noteFailedBinding(of: pointer, code) } }
  }

  // MARK: Running

  /// Runs to the end and resets.
  package func run() throws {
    try query { _ in }
  }

  /// Runs to the end, calling `body` with each row, and resets.
  package func query(_ body: (borrowing Row) throws -> Void) throws {
    defer { reset() }
    while try step() { try body(row) }
  }

  /// The first row, if there is one; resets.
  package func first<Result>(_ body: (borrowing Row) throws -> Result) throws -> Result? {
    defer { reset() }
    return try step() ? try body(row) : nil
  }

  /// What `body` makes of each row; resets.
  package func map<Element>(_ body: (borrowing Row) throws -> Element) throws -> [Element] {
    var elements: [Element] = []
    try query { elements.append(try body($0)) }
    return elements
  }

  /// Whether there is a row; resets.
  package func hasRow() throws -> Bool { try first { _ in true } ?? false }

  /// The current row, valid until the next step.
  package var row: Row { Row(pointer: pointer) }

  /// Goes to the next row, if there is one.
  package func step() throws -> Bool {
    try connection._withUnsafeGuaranteedRef { connection in
      if let code = connection.failedBinding(of: pointer) {
        // The connection's own message may be about another call.
        throw StorageError.sqlite(code: code, message: String(cString: sqlite3_errstr(code)))
      }
      connection.beginCall()
      switch sqlite3_step(pointer) {
      case SQLITE_ROW: return true
      case SQLITE_DONE: return false
      case let code: throw connection.error(code)
      }
    }
  }

  func reset() {
    sqlite3_reset(pointer)
    // Values must not stay in SQLite's memory after the statement's use.
    sqlite3_clear_bindings(pointer)
    connection._withUnsafeGuaranteedRef { $0.forgetFailedBindings(of: pointer) }
  }

  /// The current row of a statement; it must not outlive the step.
  package struct Row: ~Copyable {
    fileprivate let pointer: OpaquePointer

    package var columnCount: Int32 { sqlite3_column_count(pointer) }

    package func integer(_ column: Int32) -> Int64 {
      sqlite3_column_int64(pointer, column)
    }

    package func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    package func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    package func isNull(_ column: Int32) -> Bool {
      sqlite3_column_type(pointer, column) == SQLITE_NULL
    }

    package func text(_ column: Int32) -> String {
      // "Call sqlite3_column_text() first … then sqlite3_column_bytes()": https://www.sqlite.org/c3ref/column_blob.html
      let text = sqlite3_column_text(pointer, column)
      return String(
        decoding: UnsafeBufferPointer(start: text, count: Int(sqlite3_column_bytes(pointer, column))), as: UTF8.self)
    }

    package func bytes(_ column: Int32) -> [UInt8] {
      withBytes(column) { Array($0) }
    }

    /// The column's bytes, valid inside `body`.
    package func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
      -> Result
    {
      let start = sqlite3_column_blob(pointer, column)
      return try body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }

    /// The column's bytes, lent inside `body`.
    package func withSpan<Result>(_ column: Int32, _ body: (Span<UInt8>) throws -> Result) rethrows -> Result {
      try withBytes(column) { try body($0.assumingMemoryBound(to: UInt8.self).span) }
    }

    package func byteCount(_ column: Int32) -> Int {
      Int(sqlite3_column_bytes(pointer, column))
    }
  }
}

/// A value that statements outside of flushes and enumerations bind with others at once.
package protocol StatementValue {
  func bind(to statement: Statement, at index: Int32)
}

extension Int64: StatementValue {
  package func bind(to statement: Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension Bool: StatementValue {
  package func bind(to statement: Statement, at index: Int32) { statement.bind(self ? 1 : 0, at: index) }
}

extension String: StatementValue {
  package func bind(to statement: Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension [UInt8]: StatementValue {
  package func bind(to statement: Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension SecretBytes: StatementValue {
  package func bind(to statement: Statement, at index: Int32) {
    withUnsafeBytes { statement.bind(copying: $0, at: index) }
  }
}

/// The address used to bind an empty string.
///
/// Never written, never freed.
nonisolated(unsafe) private let emptyText = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
