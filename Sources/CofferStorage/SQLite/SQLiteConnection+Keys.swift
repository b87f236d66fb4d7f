import CSQLite
import CofferCrypto

extension SQLiteConnection {
  /// Changes the envelope, at the beginning of the current write transaction; its commit is sealed under the newest
  /// epoch.
  ///
  /// - Returns: The result of `change`, and the envelope's new sequence.
  package func changeEnvelope<Result>(
    _ change: (inout EnvelopeChange) throws -> Result
  ) throws -> (result: Result, sequence: UInt64) {
    guard let context else { throw StorageError.unsupported(reason: "an in-memory store has no keys") }
    let result = try context.store.changeEnvelope(change)
    try context.synchronizeEnvelope()
    return (result, context.store.envelope.sequence)
  }

  /// Whether there were keys of several epochs when this connection last took the write lock.
  package var hasOldEpochs: Bool { context?.codec.hasOldEpochs ?? false }

  /// Whether the envelope has room for another epoch.
  package var hasRoomForEpoch: Bool {
    get throws {
      guard let store = context?.store else { return true }
      try store.refresh()
      return store.envelope.hasRoomForEpoch
    }
  }

  /// The result of an attempt to drop the keys of old epochs.
  package enum EpochDrop {
    /// The keys were dropped; `sequence` is the envelope's new sequence.
    case dropped(sequence: UInt64)
    /// Pages have to be rewritten first.
    case neededByPages
    /// The log must be checkpointed first, or a checkpoint is running.
    case neededByLog
  }

  /// Drops the keys of all epochs but the newest, in the current write transaction, if they are no longer needed.
  package func dropOldEpochs() throws -> EpochDrop {
    guard let file = databaseFile, let store = context?.store else {
      throw StorageError.unsupported(reason: "an in-memory store has no keys")
    }
    return try file.withoutCheckpoints { () throws -> EpochDrop in
      if try store.logNeedsOldEpochs() { return .neededByLog }
      if try store.pagesNeedOldEpochs() { return .neededByPages }
      // After a power cut, what the log held before it was truncated must not come back without a key.
      try synchronizeLog()
      return .dropped(sequence: try changeEnvelope { $0.dropOldEpochs() }.sequence)
    } ?? .neededByLog
  }

  /// Rewrites every page in one transaction: https://www.sqlite.org/lang_vacuum.html.
  ///
  /// - Parameter onPage: Called for each page that is read or written.
  package func vacuum(onPage: @escaping () -> Void = {}) throws {
    try hearingOfPages(onPage) { try execute("VACUUM") }
  }

  /// Checkpoints the whole log into the database and truncates it.
  ///
  /// - Parameter onPage: Called for each page that is read or written.
  /// - Returns: false when a reader needs the log for longer than the busy timeout, or another checkpoint is under
  ///   way, for which SQLite does not wait (https://www.sqlite.org/c3ref/wal_checkpoint_v2.html).
  package func checkpointAndTruncate(onPage: @escaping () -> Void) throws -> Bool {
    do {
      try hearingOfPages(onPage) { try checkpoint() }
      return true
    } catch StorageError.busy {
      return false
    }
  }

  private func hearingOfPages(_ onPage: @escaping () -> Void, _ body: () throws -> Void) throws {
    context?.codec.onPage = onPage
    defer { context?.codec.onPage = nil }
    try body()
  }
}

/// Held while re-encrypting a store, so that no other process continues a rotation that only looks interrupted.
///
/// flock(2) on the log: SQLite has no locks there, and the system releases it when the process dies.
package final class RotationLock {
  private let descriptor: Int32

  /// Takes the lock of the store that `connection` has open; nil when it is held elsewhere.
  package init?(_ connection: SQLiteConnection) throws {
    guard let path = connection.context?.store.path else {
      throw StorageError.unsupported(reason: "an in-memory store has no keys")
    }
    let descriptor = Platform.openForReading(path + "-wal")
    guard descriptor >= 0 else { throw StorageError(errno: errno, path: path + "-wal") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let error = errno
      close(descriptor)
      guard error == EWOULDBLOCK else { throw StorageError(errno: error, path: path + "-wal") }
      return nil
    }
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }
}
