import CofferStorage

extension Session {
  /// Rebuilds the database, https://www.sqlite.org/lang_vacuum.html.
  func vacuum() throws {
    guard !isInLongLivedRead else { throw CofferError.longLivedReadTransaction }
    try core.gate.pass(timeout: core.options.busyTimeout) {
      try CofferError.translating { try connection.execute("VACUUM") }
    }
  }
}
