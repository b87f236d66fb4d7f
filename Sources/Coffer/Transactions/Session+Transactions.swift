import CofferStorage
import Dispatch

/// A commit that is complete but for its end.
struct PreparedCommit {
  let identity: CommitIdentity
  /// The end of the change log with it.
  let end: ChangeLog.End

  var number: CommitNumber { identity.number }
}

extension Session {
  /// The number of commits between checks of the log's size.
  private static let logCheckInterval: Int64 = 16

  // MARK: Read transactions

  package func read<Result>(cancellation: Cancellation? = nil, _ body: () throws -> Result) throws -> Result {
    try cancellation?.check()
    if let pinned {
      guard !pinned.hasExpired else { throw CofferError.snapshotExpired }
      let earlier = (call.mode, transaction.cancellation)
      defer { (call.mode, transaction.cancellation) = earlier }
      (call.mode, transaction.cancellation) = (.reading, cancellation)
      return try body()
    }
    try beginRead()
    let earlier = call.mode
    call.mode = .reading
    transaction.cancellation = cancellation
    defer {
      call.mode = earlier
      transaction.cancellation = nil
    }
    do {
      let result = try body()
      try cancellation?.check()
      try CofferError.translating {
        try requireTransaction()
        try connection.commit()
      }
      return result
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  func beginRead() throws {
    knownCollections.removeAll()
    known.renames = nil
    transaction = TransactionState()
    transaction.time = core.clock.now
    try core.faults?.checkReading()
    try CofferError.translating { try connection.beginRead() }
  }

  // MARK: Write transactions

  /// Runs `body` in a write transaction, and commits it.
  package func write<Result>(
    _ synchronization: SQLiteConnection.Synchronization, cancellation: Cancellation? = nil, _ body: () throws -> Result
  ) throws -> Result {
    try writing(synchronization, cancellation: cancellation) {
      let result = try body()
      try commit(prepareCommit())
      return result
    }
  }

  /// Runs `body` in a write transaction that it commits itself, by `prepareCommit` and `commit`; what it does after that comes
  /// before any notification.
  func writing<Result>(
    _ synchronization: SQLiteConnection.Synchronization, cancellation: Cancellation? = nil, _ body: () throws -> Result
  ) throws -> Result {
    try requireWritable()
    try cancellation?.check()
    try core.faults?.checkWriting()
    let stopwatch = core.stopwatch()
    return try core.gate.pass(
      timeout: core.options.busyTimeout, lending: owner?.lending, cancellation: cancellation
    ) {
      // The wait may have been long, and the connection was lent meanwhile.
      try requireWritable()
      try cancellation?.check()
      try beginWrite(synchronization, cancellation)
      stopwatch?.record { .lockWait($0) }
      let time = core.clock.now
      let earlier = call.mode
      defer { call.mode = earlier }
      try removeExpired(at: time) {
        // Another process may have committed in between.
        try beginWrite(synchronization, cancellation)
      }
      begin(cancellation, at: time)
      return try ending(body)
    }
  }

  /// Runs `body`, and notifies observers of how the transaction has ended.
  private func ending<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      let result = try body()
      let number = transaction.committed
      end(number: number, isCommitted: !transaction.isRolledBack)
      // Observers may have written meanwhile.
      hasCommitted = number != nil
      return result
    } catch {
      // The first error is the one to report; SQLite may have rolled back by itself.
      try? connection.rollback()
      if case CofferError.diskFull = error { connection.checkpointForRoom() }
      end(number: nil, isCommitted: false)
      throw error
    }
  }

  private func beginWrite(
    _ synchronization: SQLiteConnection.Synchronization, _ cancellation: Cancellation?
  ) throws {
    try takeWriteLock(synchronization, cancellation)
    do {
      try refreshKnown()
      if let witness = core.witness { try CofferError.translating { try witness.compare(connection, changeLog) } }
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  private func takeWriteLock(
    _ synchronization: SQLiteConnection.Synchronization, _ cancellation: Cancellation?
  ) throws {
    guard let cancellation else {
      return try CofferError.translating { try connection.beginWrite(synchronization) }
    }
    do {
      try CofferError.translating {
        try connection.whileWaiting({ cancellation.wait(for: .milliseconds($0)) }) {
          try connection.beginWrite(synchronization)
        }
      }
    } catch {
      try cancellation.check()
      throw error
    }
  }

  /// Throws if no write transaction may begin.
  ///
  /// On a read-only database, SQLite would begin a read transaction instead.
  func requireWritable() throws {
    guard !core.options.isReadOnly else { throw CofferError.readOnly }
    guard pinned == nil else { throw CofferError.longLivedReadTransaction }
  }

  /// Another connection has committed, or the transaction that has learnt it was rolled back.
  private func forgetKnown() {
    known.forget()
    knownCollections.removeAll()
  }

  private func refreshKnown() throws {
    if known.version == nil || known.version != connection.dataVersion {
      forgetKnown()
      // A later version of the program may have extended them.
      try CofferError.translating { try Schema.check(version: connection.tableVersion()) }
      try lookForVault()
    }
    if known.renames == nil { try loadRenames() }
  }

  /// The renames whose former names are kept, in the current transaction.
  func renames() throws -> Renames { try known.renames ?? loadRenames() }

  /// Reads the renames again: another process may have committed, or this transaction has changed them.
  @discardableResult
  func loadRenames() throws -> Renames {
    let renames = try CofferError.translating {
      let own = Renames(try RenameTable(connection: connection).all())
      let ofFleets = try declarations.renamesInFleets().filter { !own.otherNames(of: $0.former).contains($0.current) }
      return ofFleets.isEmpty ? own : Renames(own.all + ofFleets)
    }
    known.renames = renames
    known.hasRenames = !renames.all.isEmpty
    if known.hasRenames { core.hasRenames.store(true, ordering: .relaxed) }
    return renames
  }

  /// Lets the renames be read again when they are needed next: the declarations of fleets have changed.
  func forgetRenames() { known.renames = nil }

  func begin(_ cancellation: Cancellation?, at time: Int64) {
    call.mode = .writing
    hasCommitted = false
    transaction = TransactionState()
    transaction.cancellation = cancellation
    transaction.time = time
    transaction.observation = owner?.beginObservation()
    transaction.isFeedObserved = core.feed.isObserved
  }

  /// Completes the transaction: other names of settings follow, observers agree, and the change log gets its row.
  ///
  /// - Returns: nil if there is nothing to commit.
  func prepareCommit() throws -> PreparedCommit? {
    try checkCancellation()
    guard !transaction.isRolledBack else { return nil }
    try CofferError.translating { try requireTransaction() }
    try letNamesFollow()
    if let observation = transaction.observation { try callingOut { try observation.willCommit(self) } }
    try checkCancellation()
    guard !transaction.changes.isEmpty || transaction.changesDeclarations || !transaction.actions.isEmpty else {
      return nil
    }
    return try CofferError.translating {
      try noteUnrecordedEnvelope()
      let (identity, end) = try changeLog.append(
        transaction.changes, after: endOfLog(), time: transaction.time, writer: core.writer,
        author: transaction.isExpiry ? nil : authorText, action: CommitAction.text(of: transaction.actions))
      if end.number % ChangeLog.sweepInterval == 0 { try history.dropOld(time: transaction.time) }
      return PreparedCommit(identity: identity, end: end)
    }
  }

  /// Commits what was prepared, or rolls back if that is nothing.
  func commit(_ prepared: PreparedCommit?) throws {
    guard let prepared else { return try CofferError.translating { try connection.rollback() } }
    // A listener may have been added since the transaction began.
    let isFeedObserved = core.feed.isObserved
    // First, so that no reader finds the commit without its details.
    if isFeedObserved {
      core.commits.willCommit(
        prepared.number,
        CommitLog.OwnCommit(
          connection: owner?.id, changes: transaction.changes, names: transaction.changedNames,
          attachment: transaction.attachment))
    }
    do {
      try CofferError.translating {
        let envelope = core.witness == nil ? nil : connection.store?.envelopeSequence
        try connection.commit()
        didRecordEnvelope()
        known.end = prepared.end
        if let envelope { noteForWitness(prepared.end, envelope) }
        known.version = connection.dataVersion
        connection.comparedVersion = known.version
      }
    } catch {
      if isFeedObserved { core.commits.didNotCommit(prepared.number) }
      throw error
    }
    transaction.committed = prepared.number
    hasCommitted = true
  }

  /// - Parameter envelope: Its sequence as of the write lock, while no one else could change it.
  private func noteForWitness(_ end: ChangeLog.End, _ envelope: UInt64) {
    guard let store = connection.store else { return }
    core.witness?.didCommit(
      Witness(envelope: envelope, commit: end.number, link: end.link), isSynced: connection.syncsCommits, store)
  }

  /// Syncs the log: everything committed so far is on disk when this returns.
  func synchronizeLog() throws {
    try connection.synchronizeLog()
    if let store = connection.store { core.witness?.didSync(store) }
  }

  /// Notifies observers of the end of the transaction.
  func end(number: CommitNumber?, isCommitted: Bool) {
    call.mode = .idle
    let ended = transaction
    transaction = TransactionState()
    if let number {
      // The cache includes all changes of this transaction.
      if ended.isCacheCurrent { cache.commit = number }
      connection.announceCommit()
      core.feed.didCommit()
      if connection.hasOldEpochs { core.onUnfinishedRotation() }
      if let expiry = known.expiry, expiry != .max { core.expiries.expect(at: expiry) }
      if core.isMetered || number % Self.logCheckInterval == 0 {
        let byteCount = (try? connection.logByteCount) ?? 0
        core.checkLog(byteCount: byteCount)
        core.options.meter?.record(.log(byteCount: byteCount))
      }
    } else {
      // What this transaction cached may include its own changes.
      forgetKnown()
      if !ended.changes.isEmpty || ended.isRolledBack { cache.removeAll() }
    }
    guard ended.observation != nil || !ended.completions.isEmpty else { return }
    var deliveries = ended.observation?.end(isCommitted: isCommitted) ?? []
    for completion in ended.completions {
      deliveries.append {
        guard let queue = completion.queue else { return completion.block(isCommitted) }
        queue.async { completion.block(isCommitted) }
      }
    }
    betweenTransactions { core.gate.deliver(deliveries) }
  }
}
