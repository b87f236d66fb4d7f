import CofferStorage

extension Session {
  // MARK: Versions

  /// The version of this transaction's changes: the number of its future commit.
  func newVersion() throws -> Int64 {
    if let version = transaction.version { return version }
    let version = try endOfLog().sequence + 1
    transaction.version = version
    return version
  }

  /// The end of the change log in the current write transaction; read from the table only if this connection does not know
  /// it from its last one.
  func endOfLog() throws -> ChangeLog.End {
    if let knownEnd { return knownEnd }
    let end = try changeLog.end()
    knownEnd = end
    return end
  }

  /// - Throws: `CofferError.versionMismatch`.
  package func require(version expected: Int64, _ key: String, in collection: String) throws {
    let actual = try version(key, in: collection)
    guard actual == expected else {
      throw CofferError.versionMismatch(collection: collection, key: key, expected: expected, actual: actual)
    }
  }

  // MARK: Keeping history

  /// Runs `body`, which changes or removes an item, and keeps the previous item if the collection has a history.
  func keepingHistory<Result>(
    of key: String, in collection: StoredCollection, _ body: () throws -> Result
  ) throws -> Result {
    guard let limits = collection.history ?? (transaction.keepsAllHistory ? HistoryLimits() : nil) else {
      return try body()
    }
    // If the change fails, the copy must be undone too.
    return try savepoint {
      try history.keep(key, in: collection.id, limits, endingWith: newVersion(), time: transaction.time, by: authorText)
      return try body()
    }
  }

  // MARK: Declaring

  /// - Parameter limits: nil to keep no history, and drop what exists.
  func setHistoryLimits(_ limits: HistoryLimits?, of collection: String) throws {
    try changingTogether {
      // A collection that does not exist keeps no history anyway.
      guard try limits != nil || storedCollection(collection) != nil else { return }
      var stored = try makeCollection(collection)
      guard stored.history != limits else { return }
      stored.history = limits
      try collections.setHistoryLimits(limits, stored.id)
      try history.drop(in: stored.id, beyond: limits, time: transaction.time)
      knownCollections[collection] = stored
      transaction.changesDeclarations = true
    }
  }

  // MARK: Reading history

  func historyLimits(of collection: String) throws -> HistoryLimits? {
    try reading { try storedCollection(collection)?.history }
  }

  /// The earlier values of an item, newest first.
  func history(_ key: String, in collection: String) throws -> [History.Row] {
    try reading {
      try storedCollection(collection).map { try history.rows(key, in: $0.id, isSealed: $0.isSealed) } ?? []
    }
  }

  /// One earlier value of an item.
  func historicItem(_ version: Int64, _ key: String, in collection: String) throws -> HeldItem? {
    try reading { try storedCollection(collection).flatMap { try history.item(version, key, in: $0) } }
  }

  /// The keys of a collection that have earlier values.
  func keysWithHistory(in collection: String) throws -> [String] {
    try reading { try collectionID(collection).map(history.keys) ?? [] }
  }
}
