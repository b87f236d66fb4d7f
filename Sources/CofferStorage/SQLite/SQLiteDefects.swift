import CSQLite

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
