import CofferStorage

extension Session {
  // MARK: Versions

  /// The version of this transaction's changes: the number of its future commit.
  func newVersion() throws -> CommitNumber {
    if let version = transaction.version { return version }
    let version = try endOfLog().number + 1
    transaction.version = version
    return version
  }

  /// The end of the change log in the current write transaction; read from the table only if this connection does not know
  /// it from its last one.
  func endOfLog() throws -> ChangeLog.End {
    if let end = known.end { return end }
    let end = try changeLog.end()
    known.end = end
    return end
  }

  /// - Throws: `CofferError.versionMismatch`.
  package func require(version expected: CommitNumber, _ key: String, in collection: String) throws {
    let actual = try version(key, in: collection)
    guard actual == expected else {
      throw CofferError.versionMismatch(collection: collection, key: key, expected: expected, actual: actual)
    }
  }

  // MARK: Keeping history

  /// Runs `body`, which changes or removes an item, and keeps the previous item if the collection has a history.
  func keepingHistory<Result>(
    of key: String, in collection: StoredCollection, expired: Int64? = nil, _ body: () throws -> Result
  ) throws -> Result {
    guard let limits = limits(of: collection) else { return try body() }
    // If the change fails, the copy must be undone too.
    return try savepoint {
      try history.keep(
        key, in: collection.id, limits, endingWith: newVersion(), expired: expired, time: transaction.time,
        by: expired == nil ? authorText : nil)
      return try body()
    }
  }

  /// Keeps all items of a collection, which the caller removes, if the collection has a history.
  func keepHistoryOfAll(in collection: StoredCollection) throws {
    guard let limits = limits(of: collection) else { return }
    try history.keepAll(
      in: collection.id, limits, endingWith: newVersion(), time: transaction.time, by: authorText)
  }

  /// Whether what is replaced now goes into the history: of this collection, or of any in this transaction.
  ///
  /// An equal value set again replaces nothing.
  func keepsHistory(of collection: StoredCollection) -> Bool {
    collection.history != nil || transaction.keepsAllHistory
  }

  private func limits(of collection: StoredCollection) -> HistoryLimits? {
    collection.history ?? (transaction.keepsAllHistory ? HistoryLimits() : nil)
  }

  // MARK: Declaring

  /// - Parameter limits: nil to keep no history from now on; what exists stays.
  func setHistoryLimits(_ limits: HistoryLimits?, of collection: String) throws {
    try changingTogether {
      // Turning it off makes no collection, and does not bring a removed environment back.
      let present = try limits == nil ? storedCollection(collection) : makeCollection(collection)
      guard var stored = present, stored.history != limits else { return }
      stored.history = limits
      try collections.setHistoryLimits(limits, stored.id)
      if let limits { try history.drop(in: stored.id, beyond: limits, time: transaction.time) }
      knownCollections[collection] = stored
      note(limits == nil ? .historyOff(collection) : .historyOn(collection))
    }
  }

  /// Erases the history of a collection.
  func eraseHistory(of collection: String) throws {
    try changingTogether {
      guard let stored = try collections.collection(named: collection), try history.erase(in: stored.id) else { return }
      note(.historyErased(collection))
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
  func historicItem(_ version: CommitNumber, _ key: String, in collection: String) throws -> HeldItem? {
    try reading { try storedCollection(collection).flatMap { try history.item(version, key, in: $0) } }
  }

  /// The keys of a collection that have earlier values.
  func keysWithHistory(in collection: String) throws -> [String] {
    try reading { try collectionID(collection).map(history.keys) ?? [] }
  }
}
