import CofferStorage

extension Session {
  /// Rebuilds the database, https://www.sqlite.org/lang_vacuum.html.
  func vacuum() throws {
    guard !isInLongLivedRead else { throw CofferError.longLivedReadTransaction }
    try core.gate.pass(timeout: core.options.busyTimeout) {
      try CofferError.translating { try connection.execute("VACUUM") }
    }
  }

  /// Copies the snapshot of now into an empty database, page by page.
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1; what it throws ends the copying.
  func copyPages(to destination: SQLiteConnection, progress: (Double) throws -> Void) throws {
    guard !isInLongLivedRead else { throw CofferError.longLivedReadTransaction }
    try CofferError.translating { try connection.copyPages(to: destination, progress: progress) }
  }
}
