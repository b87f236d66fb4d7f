extension Session {
  /// Runs `body` so that each operation in it commits by itself.
  func autocommitting<Result>(cancellation: Cancellation? = nil, _ body: () throws -> Result) throws -> Result {
    try requireWritable()
    try cancellation?.check()
    let earlier = (mode, autocommitCancellation)
    (mode, autocommitCancellation) = (.autocommit, cancellation)
    defer { (mode, autocommitCancellation) = earlier }
    return try body()
  }

  /// Whether operations commit by themselves.
  var isAutocommitting: Bool { mode == .autocommit }

  /// Runs `body` in the transaction that is under way; where operations commit by themselves, in one of its own.
  package func inTransaction<Result>(_ body: () throws -> Result) throws -> Result {
    guard mode == .autocommit else { return try body() }
    return try write(.full, cancellation: autocommitCancellation, body)
  }
}
