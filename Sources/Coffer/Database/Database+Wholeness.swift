import CofferStorage

extension Database {
  /// Checks, before the whole store is relied on or rewritten, that every page authenticates, and that SQLite finds
  /// nothing wrong with the database.
  ///
  /// - Throws: `CofferError.damaged`.
  package func checkWhole() throws {
    let store = try storeOnDisk()
    try CofferError.translating {
      let pages = try store.verifyPages { _ in }
      if let first = pages.damaged.first {
        let rest = pages.damaged.count - 1
        throw StorageError.damaged(
          part: "page \(first)", reason: "it does not authenticate" + (rest > 0 ? ", nor do \(rest) others" : ""))
      }
      guard pages.missing.isEmpty else {
        throw StorageError.damaged(part: "page \(pages.missing.lowerBound)", reason: "the file is truncated")
      }
      if let problem = pages.headerProblem { throw StorageError.damaged(part: "page 1", reason: problem) }
    }
    let problem = try read { session in
      try CofferError.translating { try session.connection.integrityProblem() }
    }
    if let problem { throw CofferError.damaged(part: "database", reason: problem) }
  }

  /// Checks, before the first step of a change that ends with rewriting the whole store, that this is possible.
  ///
  /// The steps cannot be undone together.
  ///
  /// - Throws: `CofferError.damaged`, `.diskFull`.
  package func checkRewritable() throws {
    guard case .file(let store) = backing else { return try checkUsable() }
    try checkWhole()
    try CofferError.translating { try store.checkRoomToRewrite() }
  }
}
