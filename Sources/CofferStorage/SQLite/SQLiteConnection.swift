import CSQLite
import CofferCrypto

/// One SQLite connection to a store, set up the one way Coffer uses it.
///
/// Used by one thread at a time.
package final class SQLiteConnection {
  private let handle: OpaquePointer
  /// nil for a store in memory, which nothing seals.
  let context: ConnectionContext?
  private let path: String
  private var isClosed = false
  @exclusivity(unchecked) private var statements = StatementCache()

  /// When a commit returns.
  package enum Synchronization: Sendable {
    /// When other connections see it; a power cut may take it back, never a crash of the program
    /// (https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL).
    case normal
    /// When the disk has it (FULL).
    case full
  }

  private var synchronization: Synchronization?

  private var commitHook: CommitHook?

  private final class CommitHook {
    let body: () -> Void

    init(body: @escaping () -> Void) {
      self.body = body
    }
  }

  /// How many frames the log had when it was last tried to fold it in; see `foldLogInSteps`.
  private let triedFrameCount = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

  /// How often the SQL function `updated` ran; see `runUpsert`.
  private let updateCount = UnsafeMutablePointer<Int>.allocate(capacity: 1)

  /// Opens a connection to an existing store.
  ///
  /// - Parameter check: Reads something. Opening is lazy; the first read tells whether the pages open at all.
  package convenience init(
    store: Store, busyTimeout: Duration,
    check: (SQLiteConnection) throws -> Void = { try $0.execute("PRAGMA main.schema_version") }
  ) throws {
    try store.checkProcess()
    try self.init(store: store, isCreating: false, busyTimeout: busyTimeout)
    do {
      try check(self)
    } catch {
      try? closeUntouched()
      throw error
    }
  }

  /// Opens a connection to a store without pages yet, and lays it out: page size, reserve, log.
  convenience init(creating store: Store) throws {
    try self.init(store: store, isCreating: true, busyTimeout: .zero)
    try layOutPages()
    // The switch to a log is one write of page 1, which would want a rollback journal.
    try execute("PRAGMA journal_mode=MEMORY")
    try execute("PRAGMA journal_mode=WAL")
  }

  /// Says how pages are made, before the first one is written: SQLite then leaves the end of every page alone.
  private func layOutPages() throws {
    var reserve = Int32(Layout.reserveByteCount)
    try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve))
    try execute("PRAGMA page_size=\(Layout.pageByteCount)")
  }

  private convenience init(store: Store, isCreating: Bool, busyTimeout: Duration) throws {
    let context = try ConnectionContext(store: store, isCreating: isCreating)
    try self.init(context: context, path: store.path, vfs: store.vfs.name, busyTimeout: busyTimeout)
  }

  /// Opens a connection to a store that lives in memory, for as long as the `HeapStore` does.
  ///
  /// - Parameter isCreating: Whether it is the first one. Pages are laid out as in a file, so that they can be copied there.
  package convenience init(inMemory store: HeapStore, isCreating: Bool = false, busyTimeout: Duration) throws {
    try self.init(context: nil, path: store.path, vfs: HeapVFS.name, busyTimeout: busyTimeout)
    if isCreating { try layOutPages() }
    try execute("PRAGMA journal_mode=WAL")
  }

  /// Opens or creates a plain SQLite database, which nothing seals; what Coffer is measured against.
  package convenience init(plainFileAt path: String) throws {
    try self.init(context: nil, path: path, vfs: nil, busyTimeout: .zero)
    try execute("PRAGMA journal_mode=WAL")
  }

  /// Opens an empty file, to be filled with a plain SQLite database, which nothing seals.
  ///
  /// Nothing is written beside it: whoever fills it throws it away when that fails.
  convenience init(fillingPlainFileAt path: String) throws {
    try self.init(context: nil, path: path, vfs: nil, busyTimeout: .zero)
    try execute("PRAGMA journal_mode=MEMORY")
  }

  /// Opens a plain SQLite database, which nothing seals, for reading alone.
  ///
  /// It is taken for one that nobody writes to: no lock, no log, no file beside it
  /// (https://www.sqlite.org/uri.html, "immutable").
  package convenience init(readingPlainFileAt path: String) throws {
    try self.init(context: nil, path: path, vfs: nil, busyTimeout: .zero, query: "immutable=1", isReadOnly: true)
    do {
      // Opening is lazy; the first read tells whether it is a database at all.
      try execute("PRAGMA main.schema_version")
    } catch {
      try? close()
      throw error
    }
  }

  private init(
    context: ConnectionContext?, path: String, vfs: String?, busyTimeout: Duration, query: String = "",
    isReadOnly: Bool = false
  ) throws {
    self.context = context
    self.path = path
    var handle: OpaquePointer?
    let isReadOnly = context?.store.isReadOnly ?? isReadOnly
    var flags = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
    flags |= SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    if context == nil, !isReadOnly { flags |= SQLITE_OPEN_CREATE }
    let uri = "file:" + Self.percentEncoded(path)
    let code =
      context?.whileListed { token in
        sqlite3_open_v2("\(uri)?coffer=\(token)", &handle, flags | SQLITE_OPEN_NOFOLLOW, vfs)
      } ?? sqlite3_open_v2("\(uri)?\(query)", &handle, flags, vfs)
    guard let handle else { throw StorageError.inputOutput(path: path, reason: "out of memory") }
    self.handle = handle
    updateCount.initialize(to: 0)
    triedFrameCount.initialize(to: 0)
    // When something throws from here on, `deinit` closes the handle.
    try check(code)
    // A log stays as it is; SQLite would try to fold it in.
    if isReadOnly { try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)) }
    setBusyTimeout(busyTimeout)
    // https://www.sqlite.org/security.html, "Untrusted SQLite database files"
    try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0))
    try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_DEFENSIVE, 1))
    try check(
      sqlite3_create_function_v2(
        handle, "updated", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, updateCount,
        { context, _, arguments in
          sqlite3_user_data(context).assumingMemoryBound(to: Int.self).pointee += 1
          sqlite3_result_value(context, arguments![0])
        }, nil, nil, nil))
    // Temporary tables, statement journals and VACUUM's copy stay in memory; what is removed is overwritten.
    try execute("PRAGMA temp_store=MEMORY; PRAGMA secure_delete=ON; PRAGMA cell_size_check=ON")
    // A log that has grown, because a reader held on to an old snapshot, shrinks when it starts over.
    try execute("PRAGMA journal_size_limit=16777216")
    foldLogInSteps()
  }

  /// Says how long to wait for a lock of others.
  package func setBusyTimeout(_ timeout: Duration) {
    sqlite3_busy_timeout(handle, Int32(clamping: timeout.milliseconds))
  }

  /// Folds the log into the database after each 1,000 frames.
  ///
  /// SQLite's own way tries after every commit beyond that number, at a cost that grows with the log, for as long as a
  /// reader holds on to an old snapshot (https://www.sqlite.org/c3ref/wal_autocheckpoint.html).
  private func foldLogInSteps() {
    sqlite3_wal_hook(
      handle,
      { tried, handle, name, frameCount in
        let tried = tried!.assumingMemoryBound(to: Int32.self)
        // The log has started over.
        if frameCount < tried.pointee { tried.pointee = 0 }
        guard frameCount >= tried.pointee + 1000 else { return SQLITE_OK }
        tried.pointee = frameCount
        // What fails here is tried again later; the log keeps everything until then.
        sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        return SQLITE_OK
      }, triedFrameCount)
  }

  /// Finalizes the statements and closes the connection; closing the last one of a store folds the log into it, unless
  /// it only reads.
  package func close() throws {
    guard !isClosed else { return }
    isClosed = true
    statements.finalizeAll()
    try check(sqlite3_close(handle))
  }

  /// Folds the whole log into the database.
  ///
  /// Closing does so too, but tells nobody when it fails.
  func checkpoint() throws {
    try check(sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil))
  }

  /// Closes the connection to a store that was refused: a log that is there stays as it is.
  package func closeUntouched() throws {
    // With an empty log there is nothing to fold in, and closing takes away the files that opening made.
    if let context, context.store.logByteCount > 0 {
      try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1))
    }
    try close()
  }

  deinit {
    if !isClosed {
      statements.finalizeAll()
      sqlite3_close_v2(handle)
    }
    updateCount.deallocate()
    triedFrameCount.deallocate()
  }

  static func percentEncoded(_ path: String) -> String {
    // https://www.sqlite.org/uri.html: `?` and `#` end the path, `%` escapes. Most paths have none of them.
    func isSpecial(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "%")
    }
    guard path.utf8.contains(where: isSpecial) else { return path }
    var encoded = ""
    for scalar in path.unicodeScalars {
      switch scalar {
      case "?": encoded += "%3f"
      case "#": encoded += "%23"
      case "%": encoded += "%25"
      default: encoded.unicodeScalars.append(scalar)
      }
    }
    return encoded
  }
}

// MARK: - Statements

extension SQLiteConnection {
  /// Runs SQL whose rows nobody wants.
  package func execute(_ sql: String) throws {
    beginCall()
    try check(sqlite3_exec(handle, sql, nil, nil, nil))
  }

  /// Before each call into SQLite whose error is told on: an automatic checkpoint may have failed in between.
  func beginCall() {
    context?.clearFailure()
  }

  /// The statement for `sql`, prepared at its first use and reset.
  package func statement(_ sql: StaticString) throws -> Statement {
    if let statement = statements[sql] { return statement }
    let statement = try prepare(sql)
    statements.insert(statement, for: sql)
    return statement
  }

  /// The statement for `sql`, for one user alone until it is returned.
  package func takeStatement(_ sql: StaticString) throws -> Statement {
    try statements.remove(sql) ?? prepare(sql)
  }

  /// Takes back what `takeStatement` gave.
  package func returnStatement(_ statement: Statement, _ sql: StaticString) {
    statement.reset()
    // Where two were in use at a time, one is enough.
    statements.remove(sql)?.finalize()
    statements.insert(statement, for: sql)
  }

  private func prepare(_ sql: StaticString) throws -> Statement {
    var pointer: OpaquePointer?
    let code = sqlite3_prepare_v3(
      handle, UnsafeRawPointer(sql.utf8Start).assumingMemoryBound(to: CChar.self), Int32(sql.utf8CodeUnitCount),
      UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
    try check(code)
    guard let pointer else { preconditionFailure("there is no statement in \"\(sql)\"") }
    return Statement(pointer: pointer, connection: self)
  }

  /// What became of the row of an upsert.
  package enum UpsertResult: Sendable {
    case inserted, updated, unchanged
  }

  /// Runs an `INSERT … ON CONFLICT DO UPDATE` of one row whose update sets `x = updated(y)`: the function, which gives
  /// its argument, is how an update is told from an insert.
  ///
  /// `RETURNING` would tell too, at twice the cost of the whole statement.
  package func runUpsert(_ statement: Statement) throws -> UpsertResult {
    updateCount.pointee = 0
    try statement.run()
    return changeCount == 0 ? .unchanged : updateCount.pointee > 0 ? .updated : .inserted
  }

  /// Copies the whole database into another one, page by page, https://www.sqlite.org/backup.html.
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1; what it throws ends the copying.
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
    // Gives the error of a step that failed, also where it was this database that could not be read.
    let code = sqlite3_backup_finish(backup)
    if code != SQLITE_OK, let failure = context?.takeFailure() { throw failure }
    try destination.check(code)
  }

  /// The size of the log in bytes; 0 when there is none.
  package var logByteCount: Int {
    get throws {
      guard let log = try logFile() else { return 0 }
      var size: Int64 = 0
      try check(log.pointee.pMethods.pointee.xFileSize(log, &size))
      return Int(size)
    }
  }

  private func logFile() throws -> UnsafeMutablePointer<sqlite3_file>? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file))
    return file?.pointee.pMethods == nil ? nil : file
  }

  /// How many rows the last statement changed.
  package var changeCount: Int { Int(sqlite3_changes64(handle)) }
}

// MARK: - Transactions

extension SQLiteConnection {
  package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  package func beginRead() throws {
    try endAbandonedTransaction()
    try statement("BEGIN DEFERRED").run()
  }

  /// Moves with each commit that this connection makes, and with each of others that a transaction of it finds made.
  ///
  /// "The data version changes whenever any change occurs to the corresponding database file, either through SQL statements
  /// on the same database connection or through transactions committed by separate database connections":
  /// https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html, SQLITE_FCNTL_DATA_VERSION.
  package var dataVersion: UInt32? {
    var version: UInt32 = 0
    let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_DATA_VERSION, &version)
    return code == SQLITE_OK ? version : nil
  }

  /// Begins a write transaction, waiting for the lock no longer than the busy timeout.
  package func beginWrite(_ synchronization: Synchronization) throws {
    try endAbandonedTransaction()
    if self.synchronization != synchronization {
      try execute(synchronization == .full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL")
      self.synchronization = synchronization
    }
    try statement("BEGIN IMMEDIATE").run()
    context?.store.repairEnvelope()
  }

  /// Rolls back a transaction that could not be rolled back when it failed: that takes memory, too.
  private func endAbandonedTransaction() throws {
    if isInTransaction { try rollback() }
  }

  /// Runs `body` at the start of each commit, https://www.sqlite.org/c3ref/commit_hook.html.
  package func onCommit(_ body: @escaping () -> Void) {
    let box = CommitHook(body: body)
    commitHook = box
    sqlite3_commit_hook(
      handle,
      { hook in
        Unmanaged<CommitHook>.fromOpaque(hook!).takeUnretainedValue().body()
        return 0
      }, Unmanaged.passUnretained(box).toOpaque())
  }

  package func commit() throws {
    try statement("COMMIT").run()
  }

  /// The counter of the store's commits; nil where there is no shared memory, or before the first read.
  package var commitCounter: CommitCounter? {
    if let databaseFile { return databaseFile.commitCounter }
    return OpenFile.heap(file)?.commitCounter
  }

  /// What the counter showed when this connection last let go of the write lock.
  package var commitCountAfterWrite: UInt64? {
    if let databaseFile { return databaseFile.indexVersionAfterWrite }
    return OpenFile.heap(file)?.indexVersionAfterWrite
  }

  /// nil for a store in memory.
  var databaseFile: DatabaseFile? { OpenFile.database(file) }

  private var file: UnsafeMutablePointer<sqlite3_file>? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    return sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK ? file : nil
  }

  /// Wakes those who wait for commits of others, in all processes; see `FileWatcher`.
  package func announceCommit() {
    if context != nil { FileWatcher.announce(path) }
  }

  /// Ends the transaction without its changes; SQLite may have done so by itself
  /// (https://www.sqlite.org/lang_transaction.html, "Response to errors within a transaction").
  package func rollback() throws {
    guard isInTransaction else { return }
    try statement("ROLLBACK").run()
  }

  /// Random bytes for what this write transaction stores; of the source of its nonces, which draws ahead.
  package func randomBytes(count: Int) throws -> [UInt8] {
    try context?.codec.randomBytes(count: count) ?? RandomSource.bytes(count: count)
  }

  /// Makes everything committed so far durable.
  package func synchronizeLog() throws {
    // Without a log there is nothing that the last checkpoint has not synced.
    guard let log = try logFile() else { return }
    // What an earlier sync has left out is written again, which takes the write lock.
    let needsLock = context?.store.hasUnsyncableLog.load(ordering: .acquiring) ?? false
    if needsLock { try beginWrite(.full) }
    defer { if needsLock { try? rollback() } }
    beginCall()
    try check(log.pointee.pMethods.pointee.xSync(log, SQLITE_SYNC_NORMAL))
  }

  /// The first frame of the log that a recovery by this connection left out because it did not authenticate.
  ///
  /// 0 is the log's header; nil when nothing was lost.
  package var firstLostLogFrame: UInt32? { context?.firstLostFrame }
}

// MARK: - Errors

extension SQLiteConnection {
  func check(_ code: Int32) throws {
    guard code != SQLITE_OK, code != SQLITE_ROW, code != SQLITE_DONE else { return }
    throw error(code)
  }

  /// What `code` means, in SQLite's words, or in the VFS's where it said more.
  func error(_ code: Int32) -> StorageError {
    let message = String(cString: sqlite3_errmsg(handle))
    let failure = context?.takeFailure()
    // Shared memory that may only be read is in a state which the writer at work is about to change.
    if code == COFFER_READONLY_RECOVERY || code == COFFER_READONLY_CANTINIT { return .busy }
    switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: return .busy
    case SQLITE_FULL: return .diskFull(path: path)
    case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_PROTOCOL:
      if let failure { return failure }
      if code & 0xff == SQLITE_CORRUPT || code & 0xff == SQLITE_NOTADB {
        return .damaged(part: "database", reason: message)
      }
      let systemError = sqlite3_system_errno(handle)
      let isOpen = code & 0xff == SQLITE_IOERR
      // The number may be left over from something else: a file that is open is not missing.
      guard systemError != 0, !isOpen || systemError != ENOENT else {
        return .inputOutput(path: path, reason: message)
      }
      return StorageError(errno: systemError, path: path)
    case SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH: return .permissionDenied(path: path, reason: message)
    default: return .sqlite(code: code, message: message)
    }
  }
}

extension Duration {
  fileprivate var milliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
