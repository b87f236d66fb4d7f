import CSQLite

/// One SQLite connection to a store, set up the one way Coffer uses it.
///
/// Used by one thread at a time.
package final class SQLiteConnection {
  let handle: OpaquePointer
  /// nil for a store in memory, which is not sealed.
  let context: ConnectionContext?
  let path: String
  private var isClosed = false
  @exclusivity(unchecked) var statements = StatementCache()
  /// Of statements not reset since; nearly always empty.
  @exclusivity(unchecked) private var failedBindings: [FailedBinding] = []

  private struct FailedBinding {
    let statement: OpaquePointer
    let code: Int32
  }

  /// When a commit returns.
  package enum Synchronization: Sendable {
    /// When other connections see it. A power cut may undo it; a crash of the program cannot
    /// (https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL).
    case normal
    /// When the disk has it (FULL).
    case full
  }

  var synchronization: Synchronization?
  /// The data version as of which the store was last compared with what is remembered of it outside; nil if it was not.
  package var comparedVersion: UInt32?
  private var busyTimeout = Duration.zero
  /// The version of the tables that the current transaction sees; nil if it has not asked.
  @exclusivity(unchecked) var knownTableVersion: Int?

  var commitHook: CommitHook?

  final class CommitHook {
    let body: () -> Void

    init(body: @escaping () -> Void) {
      self.body = body
    }
  }

  /// The log's number of frames at the last attempt to checkpoint it, and when the room on the disk was last looked at; see
  /// `checkpointInSteps`.
  private let triedFrameCount = UnsafeMutablePointer<(tried: Int32, looked: Int32)>.allocate(capacity: 1)

  /// How often the SQL function `updated` ran; see `runUpsert`.
  let updateCount = UnsafeMutablePointer<Int>.allocate(capacity: 1)

  /// Opens a connection to an existing store.
  ///
  /// - Parameters:
  ///   - hasRoom: Whether there may be room for a log and shared memory.
  ///   - check: Reads something: opening is lazy, and only the first read shows whether the pages can be opened.
  package convenience init(
    store: Store, busyTimeout: Duration, hasRoom: Bool = true,
    check: (SQLiteConnection) throws -> Void = { try $0.execute("PRAGMA main.schema_version") }
  ) throws {
    try store.checkProcess()
    try self.init(store: store, isCreating: false, hasRoom: hasRoom, busyTimeout: busyTimeout)
    do {
      try check(self)
      if !store.isReadOnly { try checkHeader() }
    } catch {
      try? closeUntouched()
      throw error
    }
  }

  /// Throws if the header of page 1 says that there is no log, or that this version may not write: SQLite believes it.
  private func checkHeader() throws {
    let mode = try statement("PRAGMA journal_mode").first { $0.text(0) }
    guard mode == "wal", sqlite3_db_readonly(handle, "main") == 0 else {
      throw StorageError.damaged(
        part: "page 1", reason: "its header says that the store has no log, or cannot be written")
    }
  }

  /// Opens a connection to an existing store.
  ///
  /// A read-only one does without a log and shared memory where there is no room for them, as on read-only media.
  package static func open(
    _ store: Store, busyTimeout: Duration,
    check: (SQLiteConnection) throws -> Void = { try $0.execute("PRAGMA main.schema_version") }
  ) throws -> SQLiteConnection {
    var hasRoom = true
    for _ in 0..<Store.attemptCount {
      do {
        return try SQLiteConnection(store: store, busyTimeout: busyTimeout, hasRoom: hasRoom, check: check)
      } catch StorageError.diskFull where store.isReadOnly && hasRoom {
        hasRoom = false
      } catch StorageError.notFound where store.isReadOnly && Store.isPresent(at: store.path) {
        // The log or its index is missing, which was there before: the last writer has just closed the store.
      }
    }
    throw StorageError.busy
  }

  /// Opens a connection to a store without pages, and sets its page size, reserve and journal mode.
  convenience init(creating store: Store) throws {
    try self.init(store: store, isCreating: true, hasRoom: true, busyTimeout: .zero)
    try layOutPages()
    // Switching to WAL writes page 1, which would otherwise need a rollback journal.
    try execute("PRAGMA journal_mode=MEMORY")
    try execute("PRAGMA journal_mode=WAL")
  }

  /// Configures the page layout before the first page is written, so that SQLite reserves the end of every page.
  private func layOutPages() throws {
    var reserve = Int32(Layout.reserveByteCount)
    try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve))
    try execute("PRAGMA page_size=\(Layout.pageByteCount)")
  }

  private convenience init(store: Store, isCreating: Bool, hasRoom: Bool, busyTimeout: Duration) throws {
    let context = try ConnectionContext(store: store, isCreating: isCreating, hasRoom: hasRoom)
    try self.init(context: context, path: store.path, vfs: store.vfs.name, busyTimeout: busyTimeout)
  }

  /// Opens a connection to an in-memory store, which lives as long as the `HeapStore`.
  ///
  /// - Parameters:
  ///   - isCreating: Whether it is the first one. Pages are laid out as in a file, so that they can be copied to one.
  ///   - vfs: A VFS above that of in-memory stores; nil for that one.
  package convenience init(
    inMemory store: HeapStore, isCreating: Bool = false, busyTimeout: Duration, vfs: String? = nil
  ) throws {
    try self.init(context: nil, path: store.path, vfs: vfs ?? HeapVFS.name, busyTimeout: busyTimeout)
    if isCreating { try layOutPages() }
    try execute("PRAGMA journal_mode=WAL")
  }

  /// Opens or creates an unsealed SQLite database; the baseline of the benchmarks.
  package convenience init(plainFileAt path: String) throws {
    try self.init(context: nil, path: path, vfs: nil, busyTimeout: .zero)
    try execute("PRAGMA journal_mode=WAL")
  }

  /// Opens an empty file, to be filled with an unsealed SQLite database.
  ///
  /// Nothing is written beside it: if filling it fails, the caller discards it.
  convenience init(fillingPlainFileAt path: String) throws {
    try self.init(context: nil, path: path, vfs: nil, busyTimeout: .zero)
    try execute("PRAGMA journal_mode=MEMORY")
  }

  /// Opens an unsealed SQLite database read-only.
  ///
  /// It is assumed to have no writers: no lock, no log, no file beside it (https://www.sqlite.org/uri.html, "immutable").
  package convenience init(readingPlainFileAt path: String) throws {
    try self.init(context: nil, path: path, vfs: nil, busyTimeout: .zero, query: "immutable=1", isReadOnly: true)
    do {
      // Opening is lazy; the first read detects whether it is a database at all.
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
    try SQLiteVersion.check()
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
    triedFrameCount.initialize(to: (0, 0))
    // If anything below throws, `deinit` closes the handle.
    try check(code)
    // Leave the log as it is; SQLite would try to checkpoint it.
    if isReadOnly { try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)) }
    setBusyTimeout(busyTimeout)
    // https://www.sqlite.org/security.html, "Untrusted SQLite database files"
    try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0))
    try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_DEFENSIVE, 1))
    try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0))
    try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0))
    SQLiteLibrary.system.limit(handle, isStore: true)
    try check(
      sqlite3_create_function_v2(
        handle, "updated", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, updateCount,
        { context, _, arguments in
          sqlite3_user_data(context).assumingMemoryBound(to: Int.self).pointee += 1
          sqlite3_result_value(context, arguments![0])
        }, nil, nil, nil))
    // Temporary tables, statement journals and VACUUM's copy stay in memory; deleted content is overwritten.
    try execute("PRAGMA temp_store=MEMORY; PRAGMA secure_delete=ON; PRAGMA cell_size_check=ON")
    // A log that grew because a reader held an old snapshot is truncated when it restarts.
    try execute("PRAGMA journal_size_limit=16777216")
    checkpointInSteps()
  }

  /// Sets how long to wait for locks.
  package func setBusyTimeout(_ timeout: Duration) {
    busyTimeout = timeout
    sqlite3_busy_timeout(handle, Int32(clamping: timeout.milliseconds))
  }

  /// Runs `body`, calling `pause` to wait for locks, up to the busy timeout in all.
  ///
  /// https://www.sqlite.org/c3ref/busy_handler.html
  ///
  /// - Parameter pause: Waits for the given number of milliseconds before the lock is tried again; returns true to
  ///   give up.
  package func whileWaiting<Result>(_ pause: @escaping (Int) -> Bool, _ body: () throws -> Result) throws -> Result {
    let waiting = Waiting(deadline: .now + busyTimeout, pause: pause)
    sqlite3_busy_handler(
      handle,
      { waiting, count in
        let waiting = Unmanaged<Waiting>.fromOpaque(waiting!).takeUnretainedValue()
        // Short at first, like SQLite's own handler: most locks are held only briefly.
        guard ContinuousClock.now < waiting.deadline, !waiting.pause(min(1 << min(Int(count), 5), 25)) else { return 0 }
        return 1
      }, Unmanaged.passUnretained(waiting).toOpaque())
    defer { setBusyTimeout(busyTimeout) }
    return try withExtendedLifetime(waiting, body)
  }

  private final class Waiting {
    let deadline: ContinuousClock.Instant
    let pause: (Int) -> Bool

    init(deadline: ContinuousClock.Instant, pause: @escaping (Int) -> Bool) {
      self.deadline = deadline
      self.pause = pause
    }
  }

  /// Checkpoints the log after every 1,000 frames, and earlier once it takes more room than the disk has left: the database
  /// file may have to grow for that.
  ///
  /// While a reader holds an old snapshot, SQLite's own automatic checkpoint would retry after every commit beyond
  /// that number, at a cost that grows with the log (https://www.sqlite.org/c3ref/wal_autocheckpoint.html).
  private func checkpointInSteps() {
    sqlite3_wal_hook(
      handle,
      { tried, handle, name, frameCount in
        let last = tried!.assumingMemoryBound(to: (tried: Int32, looked: Int32).self)
        // The log has restarted.
        if frameCount < last.pointee.looked { last.pointee = (0, 0) }
        guard frameCount >= last.pointee.looked + framesBetweenLooks else { return SQLITE_OK }
        last.pointee.looked = frameCount
        let byteCount = UInt64(frameCount) * UInt64(Layout.frameByteCount)
        let free = sqlite3_db_filename(handle, name).flatMap { FilePath.freeByteCount($0, forRoot: geteuid() == 0) }
        let isScarce = free.map { $0 < byteCount } ?? false
        guard isScarce || frameCount >= last.pointee.tried + 1000 else { return SQLITE_OK }
        last.pointee.tried = frameCount
        // A failed checkpoint is retried later; the log keeps everything until then.
        sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        return SQLITE_OK
      }, triedFrameCount)
  }

  /// Finalizes the statements and closes the connection; closing the last one of a store checkpoints the log, unless
  /// it is read-only.
  package func close() throws {
    guard !isClosed else { return }
    isClosed = true
    statements.finalizeAll()
    if let databaseFile, databaseFile.sharesIndexWithSuccessor, databaseFile.context.store.keepIndexOpen() { return }
    // A store that was replaced has no name, nor has its log.
    if let context, context.store.isReplaced {
      try check(coffer_db_config_int(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1))
    }
    try check(sqlite3_close(handle))
  }

  /// Checkpoints the whole log.
  ///
  /// Closing does so, too, but does not report a failure.
  func checkpoint() throws {
    try check(sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil))
  }

  /// Checkpoints what no reader needs, after a commit that found no room: then the log starts over in the room that it has.
  ///
  /// If the database file has to grow for that, it may fail, too; the log keeps everything.
  package func checkpointForRoom() {
    guard let context, !context.store.isReadOnly else { return }
    sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    context.clearFailure()
  }

  /// Closes the connection to a refused store; an existing log stays as it is.
  package func closeUntouched() throws {
    // With an empty log there is nothing to checkpoint, and closing removes the files that opening created.
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
    // https://www.sqlite.org/uri.html: `?` and `#` end the path, `%` escapes.
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

// MARK: - Errors

extension SQLiteConnection {
  /// Remembers that a value could not be bound, for the step that follows.
  func noteFailedBinding(of statement: OpaquePointer, _ code: Int32) {
    failedBindings.append(FailedBinding(statement: statement, code: code))
  }

  /// The result of the first binding of a statement that failed since it was reset.
  @inline(__always)
  func failedBinding(of statement: OpaquePointer) -> Int32? {
    failedBindings.isEmpty ? nil : failedBindings.first { $0.statement == statement }?.code
  }

  @inline(__always)
  func forgetFailedBindings(of statement: OpaquePointer) {
    if !failedBindings.isEmpty { failedBindings.removeAll { $0.statement == statement } }
  }

  func check(_ code: Int32) throws {
    guard code != SQLITE_OK, code != SQLITE_ROW, code != SQLITE_DONE else { return }
    throw error(code)
  }

  /// The error for `code`, with SQLite's message, or the VFS's if it has recorded one.
  func error(_ code: Int32) -> StorageError {
    let message = String(cString: sqlite3_errmsg(handle))
    let failure = context?.takeFailure()
    // Read-only shared memory is in a state that an active writer is about to change.
    if code == COFFER_READONLY_RECOVERY || code == COFFER_READONLY_CANTINIT { return .busy }
    switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: return .busy
    case SQLITE_FULL: return .diskFull(path: path)
    // Another program has been making or recovering the shared memory for ten seconds: it may be suspended.
    case SQLITE_PROTOCOL: return failure ?? .busy
    case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB:
      if let failure { return failure }
      if code & 0xff == SQLITE_CORRUPT || code & 0xff == SQLITE_NOTADB {
        return .damaged(part: "database", reason: message)
      }
      let systemError = sqlite3_system_errno(handle)
      let isOpen = code & 0xff == SQLITE_IOERR
      // The errno may be left over from another call: a file that is open is not missing.
      guard systemError != 0, !isOpen || systemError != ENOENT else {
        return .inputOutput(path: path, reason: message)
      }
      return StorageError(errno: systemError, path: path)
    case SQLITE_READONLY:
      return .permissionDenied(path: path, reason: "the store, its folder or a file beside it cannot be written")
    case SQLITE_PERM, SQLITE_AUTH: return .permissionDenied(path: path, reason: message)
    default: return .sqlite(code: code, message: message)
    }
  }
}

/// How many frames are written to the log before the room on the disk is looked at again.
private let framesBetweenLooks: Int32 = 16

extension Duration {
  fileprivate var milliseconds: Int64 {
    // If the milliseconds overflow, practically forever.
    let (milliseconds, isOverflow) = components.seconds.multipliedReportingOverflow(by: 1000)
    guard !isOverflow else { return components.seconds < 0 ? 0 : .max }
    return milliseconds + components.attoseconds / 1_000_000_000_000_000
  }
}
