import CSQLite
import CofferCrypto

extension SQLiteConnection {
  package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  package func beginRead() throws {
    try endAbandonedTransaction()
    knownTableVersion = nil
    try statement("BEGIN DEFERRED").run()
  }

  /// Changes with each commit by this connection, and when a transaction of it first sees commits by others.
  ///
  /// "The data version changes whenever any change occurs to the corresponding database file, either through SQL
  /// statements on the same database connection or through transactions committed by separate database connections":
  /// https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html, SQLITE_FCNTL_DATA_VERSION.
  package var dataVersion: UInt32? {
    var version: UInt32 = 0
    let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_DATA_VERSION, &version)
    return code == SQLITE_OK ? version : nil
  }

  /// Whether a commit is on the disk when it returns, as the last write transaction was begun.
  package var syncsCommits: Bool { synchronization == .full }

  /// Begins a write transaction; waits for the lock up to the busy timeout.
  package func beginWrite(_ synchronization: Synchronization) throws {
    try endAbandonedTransaction()
    knownTableVersion = nil
    if self.synchronization != synchronization {
      try execute(synchronization == .full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL")
      self.synchronization = synchronization
    }
    let outdatedIndexCount = context?.outdatedIndexCount
    do {
      try statement("BEGIN IMMEDIATE").run()
    } catch StorageError.busy where context?.outdatedIndexCount != outdatedIndexCount {
      // No other connection was in the way: the wal-index is recovered now. With a timeout, SQLite itself tries again.
      try statement("BEGIN IMMEDIATE").run()
    }
    context?.store.repairEnvelope()
  }

  /// Rolls back an earlier transaction whose rollback failed, since that needs memory, too.
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

  /// The counter's value when this connection last released the write lock.
  package var commitCountAfterWrite: UInt64? {
    if let databaseFile { return databaseFile.indexVersionAfterWrite }
    return OpenFile.heap(file)?.indexVersionAfterWrite
  }

  /// Whether this connection reads the store as an image that is outdated, so that it must be opened again.
  package var isOfOldImage: Bool { databaseFile?.isOfOldImage ?? false }

  /// Whether another file now has the name of the store, its log or its index; a proper replacement also makes a commit in the
  /// old file.
  ///
  /// - Parameter isCertain: Whether to check in any case, not only if there was a commit since the last check.
  package func isReplaced(isCertain: Bool = false) -> Bool {
    databaseFile?.isReplaced(isCertain: isCertain) ?? false
  }

  /// Whether only connections have written into the file since this one has begun its transaction, as far as that can be known.
  package var hasItsContents: Bool { databaseFile?.hasItsContents() ?? true }

  /// The number of committed frames in the log; nil without shared memory, or before the first read.
  package var committedFrameCount: Int? { (databaseFile?.committedFrameCount).map { Int($0) } }

  /// The salts of the log's generation, as `LogScan` has them; nil without shared memory, or before the first read.
  package var generationSalts: UInt64? { databaseFile?.indexSalts }

  /// Runs `body` while no connection writes; nil if one does, or this process may not lock the shared memory.
  package func withoutWriters<Result>(_ body: () throws -> Result) rethrows -> Result? {
    try databaseFile?.withoutWriters(body)
  }

  /// nil for a store in memory.
  package var store: Store? { context?.store }

  /// nil for a store in memory.
  var databaseFile: DatabaseFile? { OpenFile.database(file) }

  private var file: UnsafeMutablePointer<sqlite3_file>? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    return sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK ? file : nil
  }

  /// Wakes those waiting for commits by others, in all processes; see `FileWatcher`.
  package func announceCommit() {
    if context != nil { FileWatcher.announce(path) }
  }

  /// Rolls the transaction back; SQLite may already have done so by itself
  /// (https://www.sqlite.org/lang_transaction.html, "Response to errors within a transaction").
  package func rollback() throws {
    guard isInTransaction else { return }
    try statement("ROLLBACK").run()
  }

  /// The version of the tables, `PRAGMA user_version`; SQLite is asked once in each transaction.
  package func tableVersion() throws -> Int {
    if isInTransaction, let knownTableVersion { return knownTableVersion }
    let version = try statement("PRAGMA user_version").first { Int($0.integer(0)) } ?? 0
    knownTableVersion = version
    return version
  }

  package func setTableVersion(_ version: Int) throws {
    try execute("PRAGMA user_version=\(version)")
    forgetTableVersion()
  }

  /// Asks for the version of the tables again: a part of the transaction was undone.
  package func forgetTableVersion() { knownTableVersion = nil }

  /// Random bytes to store in this write transaction, from the source of its nonces, which buffers them.
  package func randomBytes(count: Int) throws -> [UInt8] {
    try context?.codec.randomBytes(count: count) ?? RandomSource.bytes(count: count)
  }

  /// Makes everything committed so far durable.
  package func synchronizeLog() throws {
    // Without a log, the last checkpoint has synced everything.
    guard let log = try logFile() else { return }
    // Frames that an earlier sync failed to write are written again, which needs the write lock.
    let needsLock = context?.store.hasUnsyncableLog.load(ordering: .acquiring) ?? false
    if needsLock { try beginWrite(.full) }
    defer { if needsLock { try? rollback() } }
    beginCall()
    try check(log.pointee.pMethods.pointee.xSync(log, SQLITE_SYNC_NORMAL))
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

  /// The part of the log lost in a recovery by this connection; nil when nothing was lost.
  package var logLoss: LogLoss? { context?.logLoss }
}
