import CSQLite

extension SQLiteConnection {
  /// Runs SQL and ignores its rows.
  package func execute(_ sql: String) throws {
    beginCall()
    try check(sqlite3_exec(handle, sql, nil, nil, nil))
  }

  /// Call before each call into SQLite whose error is reported: an automatic checkpoint may have failed since the
  /// last one.
  func beginCall() {
    context?.clearFailure()
  }

  /// The statement for `sql`, prepared at its first use, and reset.
  package func statement(_ sql: StaticString) throws -> Statement {
    if let statement = statements[sql] { return statement }
    let statement = try prepare(sql)
    statements.insert(statement, for: sql)
    return statement
  }

  /// The same, with `values` bound to its parameters in order; nil is NULL.
  package func statement(_ sql: StaticString, _ values: (any StatementValue)?...) throws -> Statement {
    let statement = try statement(sql)
    statement.bind(values)
    return statement
  }

  /// The statement for `sql`, for exclusive use until it is returned.
  package func takeStatement(_ sql: StaticString) throws -> Statement {
    try statements.remove(sql) ?? prepare(sql)
  }

  /// Returns a statement from `takeStatement`.
  package func returnStatement(_ statement: Statement, _ sql: StaticString) {
    statement.reset()
    // If two were in use at once, only one is kept.
    statements.remove(sql)?.finalize()
    statements.insert(statement, for: sql)
  }

  private func prepare(_ sql: StaticString) throws -> Statement {
    var pointer: OpaquePointer?
    let code = sqlite3_prepare_v3(
      handle, UnsafeRawPointer(sql.utf8Start).assumingMemoryBound(to: CChar.self), Int32(sql.utf8CodeUnitCount),
      UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
    try check(code)
    guard let pointer else { preconditionFailure("no statement in \"\(sql)\"") }
    return Statement(pointer: pointer, connection: self)
  }

  /// Whether an upsert inserted or updated its row.
  package enum UpsertResult: Sendable {
    case inserted, updated, unchanged
  }

  /// Runs an `INSERT … ON CONFLICT DO UPDATE` of one row whose update sets `x = updated(y)`.
  ///
  /// The function returns its argument and counts its calls, which distinguishes an update from an insert.
  /// `RETURNING` would, too, at twice the cost of the whole statement.
  package func runUpsert(_ statement: Statement) throws -> UpsertResult {
    updateCount.pointee = 0
    try statement.run()
    return changeCount == 0 ? .unchanged : updateCount.pointee > 0 ? .updated : .inserted
  }

  /// Copies the whole database into another one, page by page, https://www.sqlite.org/backup.html.
  ///
  /// - Parameter progress: Called with the fraction done, from 0 to 1; an error it throws ends the copying.
  package func copyPages(to destination: SQLiteConnection, progress: (Double) throws -> Void = { _ in }) throws {
    beginCall()
    destination.beginCall()
    guard let backup = sqlite3_backup_init(destination.handle, "main", handle, "main") else {
      throw destination.error(sqlite3_errcode(destination.handle))
    }
    do {
      var code = SQLITE_OK
      while code == SQLITE_OK {
        code = sqlite3_backup_step(backup, 64)
        guard code == SQLITE_OK || code == SQLITE_DONE else { break }
        let total = sqlite3_backup_pagecount(backup)
        try progress(Double(total - sqlite3_backup_remaining(backup)) / Double(max(total, 1)))
      }
    } catch {
      sqlite3_backup_finish(backup)
      throw error
    }
    // Returns the error of a failed step, even if it was this database that could not be read.
    let code = sqlite3_backup_finish(backup)
    if code != SQLITE_OK, let failure = context?.takeFailure() { throw failure }
    try destination.check(code)
  }

  /// The number of rows that the last statement changed.
  package var changeCount: Int { Int(sqlite3_changes64(handle)) }

  /// The first thing that SQLite finds wrong with the database, https://www.sqlite.org/pragma.html#pragma_integrity_check;
  /// nil if there is none.
  ///
  /// - Throws: The error of a disk that cannot be read, which SQLite lists like damage.
  package func integrityProblem() throws -> String? {
    let problem = try statement("PRAGMA integrity_check(1)").first { $0.text(0) }
    guard let problem, problem != "ok" else { return nil }
    if case .inputOutput(let path, let reason)? = context?.takeFailure() {
      throw StorageError.inputOutput(path: path, reason: reason)
    }
    return problem
  }
}

/// The prepared statements of a connection, by the addresses of their literals; each statement's text occurs once in
/// the program.
///
/// There are a few dozen: a linear search is faster than hashing an address, and avoids a dictionary with a key type
/// of its own, see `Store.shared`.
struct StatementCache {
  /// Not a tuple: the runtime takes three times as long to make the type of an array of tuples.
  private struct Entry {
    let literal: UnsafePointer<UInt8>
    let statement: Statement
  }

  private var entries: [Entry] = []

  subscript(sql: StaticString) -> Statement? {
    index(of: sql).map { entries[$0].statement }
  }

  mutating func insert(_ statement: Statement, for sql: StaticString) {
    entries.append(Entry(literal: sql.utf8Start, statement: statement))
  }

  mutating func remove(_ sql: StaticString) -> Statement? {
    guard let index = index(of: sql) else { return nil }
    entries.swapAt(index, entries.count - 1)
    return entries.removeLast().statement
  }

  mutating func finalizeAll() {
    for entry in entries { entry.statement.finalize() }
    entries = []
  }

  @inline(__always)
  private func index(of sql: StaticString) -> Int? {
    entries.firstIndex { $0.literal == sql.utf8Start }
  }
}
