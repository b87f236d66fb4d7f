import CofferStorage

extension Session {
  /// Rebuilds the database, https://www.sqlite.org/lang_vacuum.html.
  ///
  /// - Parameter onPage: Hears of each page that is read or written.
  func vacuum(onPage: @escaping () -> Void = {}) throws {
    try requireWritable()
    try core.gate.pass(timeout: core.options.busyTimeout, lending: owner?.lending) {
      try requireWritable()
      try CofferError.translating { try connection.vacuum(onPage: onPage) }
    }
  }
}
