import CSQLite

/// The versions of SQLite that Coffer works with.
enum SQLiteVersion {
  /// The oldest that the tests run with.
  static let oldest: Int32 = 3_040_000

  /// Refuses an older SQLite: the library that a program finds when it starts may not be the one it was built with.
  ///
  /// - Throws: `StorageError.unsupported`.
  static func check(_ version: Int32 = sqlite3_libversion_number()) throws {
    guard version < oldest else { return }
    throw StorageError.unsupported(
      reason: "SQLite \(text(version)) is too old; Coffer needs \(text(oldest)) or later")
  }

  private static func text(_ version: Int32) -> String {
    "\(version / 1_000_000).\(version / 1000 % 1000).\(version % 1000)"
  }
}
