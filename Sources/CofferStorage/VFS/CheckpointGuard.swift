import CSQLite

/// Lock numbers of the wal-index.
///
/// https://www.sqlite.org/walformat.html#wal_locks
enum IndexLock {
  static let write: Int32 = 0
  static let checkpoint: Int32 = 1
  static let recovery: Int32 = 2
  /// The first of those for readers: held shared by those who read the database file alone, and exclusively by a
  /// checkpoint while it writes that file.
  static let firstReader: Int32 = 3
}

/// Keeps a checkpoint from folding in a log that was begun anew after it had read the wal-index header.
///
/// SQLite 3.7.0 to 3.51.2 does not notice, unless it is one of the versions that were mended afterwards: it then marks
/// frames as folded in that were written since, and a later checkpoint leaves them out
/// (https://www.sqlite.org/wal.html#walresetbug). Before a checkpoint folds anything in, it takes the lock of the first
/// reader, which keeps the log from being begun anew. Whoever finds the salts changed by then is told that the lock is
/// taken, and makes no checkpoint.
struct CheckpointGuard {
  /// Those of the log's generation when this connection was last alone with the header: SQLite reads it afterwards.
  private var salts: UInt64?

  /// Notes the generation, after a lock was taken that a checkpoint begins with, or a recovery has ended.
  mutating func begin(salts: UInt64?) {
    self.salts = salts
  }

  /// Whether a lock of the wal-index that was just taken has to be given back.
  func mustGiveBack(_ first: Int32, _ flags: Int32, salts: UInt64?) -> Bool {
    first == IndexLock.firstReader && flags & SQLITE_SHM_LOCK != 0 && salts != self.salts
  }
}

/// Defects of SQLite that are told of.
package enum SQLiteDefects {
  /// The version of the SQLite that is used.
  package static var version: String { String(cString: sqlite3_libversion()) }

  /// Whether the SQLite that is used may lose commits when two connections fold a log in that a third one begins anew.
  package static var losesCommitsAtReset: Bool { losesCommitsAtReset(version: sqlite3_libversion_number()) }

  /// Of 3.7.0 to 3.51.2, all but 3.44.6 and 3.50.7, and what followed them in their series:
  /// https://www.sqlite.org/wal.html#walresetbug.
  static func losesCommitsAtReset(version: Int32) -> Bool {
    switch version {
    case ..<3_007_000, 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
    default: true
    }
  }
}
