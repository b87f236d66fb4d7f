import CSQLite

/// Lock numbers of the wal-index.
///
/// https://www.sqlite.org/walformat.html#wal_locks
enum IndexLock {
  static let write: Int32 = 0
  static let checkpoint: Int32 = 1
  static let recovery: Int32 = 2
  /// The lock of the first reader: held shared by readers of the database file alone, and exclusively by a checkpoint
  /// while it writes that file.
  static let firstReader: Int32 = 3
}

/// Keeps a checkpoint from folding in a log that restarted after the checkpoint had read the wal-index header.
///
/// SQLite 3.7.0 to 3.51.2 does not notice, except for versions with a backported fix: it marks frames written since
/// as checkpointed, and a later checkpoint skips them (https://www.sqlite.org/wal.html#walresetbug). Before a
/// checkpoint copies anything, it takes the lock of the first reader, which keeps the log from restarting. If the
/// salts have changed by then, this reports the lock as busy, and the checkpoint is not made.
struct CheckpointGuard {
  /// The salts when this connection last had exclusive access to the header, before SQLite reads it.
  private var salts: UInt64?

  /// Records the generation, after taking a lock with which a checkpoint begins, or after a recovery.
  mutating func begin(salts: UInt64?) {
    self.salts = salts
  }

  /// Whether a wal-index lock that was just taken must be released again.
  func mustGiveBack(_ first: Int32, _ flags: Int32, salts: UInt64?) -> Bool {
    first == IndexLock.firstReader && flags & SQLITE_SHM_LOCK != 0 && salts != self.salts
  }
}

/// Known defects of SQLite that Coffer reports.
package enum SQLiteDefects {
  /// The version of the linked SQLite.
  package static var version: String { String(cString: sqlite3_libversion()) }

  /// Whether the linked SQLite may lose commits when two connections checkpoint a log that a third one restarts.
  package static var losesCommitsAtReset: Bool { losesCommitsAtReset(version: sqlite3_libversion_number()) }

  /// 3.7.0 to 3.51.2, except 3.44.6, 3.50.7 and later patch releases of those series:
  /// https://www.sqlite.org/wal.html#walresetbug.
  static func losesCommitsAtReset(version: Int32) -> Bool {
    switch version {
    case ..<3_007_000, 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
    default: true
    }
  }
}
