import CofferStorage

extension Session {
  /// Rebuilds the database, https://www.sqlite.org/lang_vacuum.html.
  func vacuum() throws {
    try requireWritable()
    try core.gate.pass(timeout: core.options.busyTimeout, lending: owner?.lending) {
      try requireWritable()
      try CofferError.translating { try connection.execute("VACUUM") }
    }
  }
}
