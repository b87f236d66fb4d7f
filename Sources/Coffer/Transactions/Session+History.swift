import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Session {
  // MARK: Versions

  /// The version of what this transaction changes: the number that it will have as a commit.
  func newVersion() throws -> Int64 {
    if let version = transaction.version { return version }
    let version = try endOfLog().sequence + 1
    transaction.version = version
    return version
  }

  /// The end of the change log in the write transaction that is under way; read only where the last one of this connection
  /// has not left it known.
  func endOfLog() throws -> ChangeLog.End {
    if let knownEnd { return knownEnd }
    let end = try changeLog.end()
    knownEnd = end
    return end
  }

  /// - Throws: `CofferError.versionMismatch`.
  func require(version expected: Int64, _ key: String, in collection: String) throws {
    let actual = try version(key, in: collection)
    guard actual == expected else {
      throw CofferError.versionMismatch(collection: collection, key: key, expected: expected, actual: actual)
    }
  }

  // MARK: Keeping history

  /// Runs `body`, which changes or removes an item, and keeps what the item was before, where its collection says so.
  ///
  /// Values that this same transaction set are not kept: nobody else has ever seen them.
  func keepingHistory<Result>(
    of key: String, in collection: StoredCollection, _ body: () throws -> Result
  ) throws -> Result {
    guard let limits = collection.history else { return try body() }
    // When the change fails by itself, the copy must go, too.
    return try savepoint {
      let version = try newVersion()
      let copy = try connection.statement(
        """
        INSERT INTO history(collection, key, version, modified, ended, time, type, metadata, data)
        SELECT collection, key, version, modified, ?3, ?4, type, metadata, data FROM items
        WHERE collection = ?1 AND key = ?2 AND version < ?3
        """)
      copy.bind(collection.id, at: 1)
      copy.bind(key, at: 2)
      copy.bind(version, at: 3)
      copy.bind(transaction.time, at: 4)
      try copy.run()
      if connection.changeCount > 0 {
        try dropExcess(of: key, in: collection.id, limits)
        try dropOld(in: collection.id, limits)
      }
      return try body()
    }
  }

  private func dropExcess(of key: String, in collection: Int64, _ limits: HistoryLimits) throws {
    let statement = try connection.statement(
      """
      DELETE FROM history WHERE collection = ?1 AND key = ?2 AND version <= (
        SELECT version FROM history WHERE collection = ?1 AND key = ?2 ORDER BY version DESC LIMIT 1 OFFSET ?3)
      """)
    statement.bind(collection, at: 1)
    statement.bind(key, at: 2)
    statement.bind(Int64(limits.maximumCount), at: 3)
    try statement.run()
  }

  private func dropOld(in collection: Int64, _ limits: HistoryLimits) throws {
    guard let age = limits.age else { return }
    let statement = try connection.statement("DELETE FROM history WHERE collection = ? AND time < ?")
    statement.bind(collection, at: 1)
    statement.bind(transaction.time - age, at: 2)
    try statement.run()
  }

  /// Once in so many commits, drops what has grown too old in collections that nobody writes in.
  func dropOldHistory(beforeCommit sequence: Int64) throws {
    guard sequence % ChangeLog.sweepInterval == 0 else { return }
    // No more than this where no history is kept.
    guard try connection.statement("SELECT 1 FROM history LIMIT 1").first({ _ in true }) ?? false else { return }
    var kept: [(id: Int64, limits: HistoryLimits)] = []
    try connection.statement("SELECT id, history_count, history_age FROM collections WHERE flags & ~1 = 2").query {
      row in
      kept.append(
        (row.integer(0), try HistoryLimits(storedCount: row.integer(1), age: row.isNull(2) ? nil : row.integer(2))))
    }
    for (id, limits) in kept { try dropOld(in: id, limits) }
  }

  // MARK: Declaring

  /// - Parameter limits: nil to keep no history, and drop what there is.
  func setHistoryLimits(_ limits: HistoryLimits?, of collection: String) throws {
    try changingTogether {
      // What isn't there keeps no history already.
      guard try limits != nil || storedCollection(collection) != nil else { return }
      var stored = try makeCollection(collection)
      guard stored.history != limits else { return }
      stored.history = limits
      let statement = try connection.statement(
        """
        UPDATE collections SET flags = iif(?2 IS NULL, flags & ~2, flags | 2), history_count = ?2, history_age = ?3
        WHERE id = ?1
        """)
      statement.bind(stored.id, at: 1)
      // What is not bound is NULL.
      if let limits { statement.bind(Int64(limits.maximumCount), at: 2) }
      if let age = limits?.age { statement.bind(age, at: 3) }
      try statement.run()
      try dropHistory(of: stored)
      knownCollections[collection] = stored
      transaction.changesDeclarations = true
    }
  }

  /// Drops what new limits do not allow.
  private func dropHistory(of collection: StoredCollection) throws {
    let statement: Statement
    if let limits = collection.history {
      try dropOld(in: collection.id, limits)
      statement = try connection.statement(
        """
        DELETE FROM history WHERE collection = ?1 AND version <= (
          SELECT same.version FROM history AS same WHERE same.collection = ?1 AND same.key = history.key
          ORDER BY same.version DESC LIMIT 1 OFFSET ?2)
        """)
      statement.bind(Int64(limits.maximumCount), at: 2)
    } else {
      statement = try connection.statement("DELETE FROM history WHERE collection = ?1")
    }
    statement.bind(collection.id, at: 1)
    try statement.run()
  }

  // MARK: Reading history

  func historyLimits(of collection: String) throws -> HistoryLimits? {
    try reading { try storedCollection(collection)?.history }
  }

  /// An earlier value, with everything about it.
  struct HistoricRow {
    let item: HeldItem
    let version: Int64
    let modified: Int64
    let ended: Int64
    let time: Int64
  }

  /// The earlier values of an item, newest first.
  func history(_ key: String, in collection: String) throws -> [HistoricRow] {
    try reading {
      guard let stored = try storedCollection(collection) else { return [] }
      return try history(key, stored.id, isSealed: stored.isSealed)
    }
  }

  /// - Parameter isSealed: As in `item(_:isSealed:)`.
  func history(_ key: String, _ collection: Int64, isSealed: Bool?) throws -> [HistoricRow] {
    var rows: [HistoricRow] = []
    let statement = try connection.statement(
      """
      SELECT type, data, metadata, version, modified, ended, time FROM history
      WHERE collection = ? AND key = ? ORDER BY version DESC
      """)
    statement.bind(collection, at: 1)
    statement.bind(key, at: 2)
    try statement.query { row in
      rows.append(
        HistoricRow(
          item: try Self.item(row, isSealed: isSealed), version: row.integer(3), modified: row.integer(4),
          ended: row.integer(5), time: row.integer(6)))
    }
    return rows
  }

  /// One earlier value of an item.
  func historicItem(_ version: Int64, _ key: String, in collection: String) throws -> HeldItem? {
    try reading {
      guard let stored = try storedCollection(collection) else { return nil }
      let statement = try connection.statement(
        "SELECT type, data, metadata FROM history WHERE collection = ? AND key = ? AND version = ?")
      statement.bind(stored.id, at: 1)
      statement.bind(key, at: 2)
      statement.bind(version, at: 3)
      return try statement.first { try Self.item($0, isSealed: stored.isSealed) }
    }
  }

  /// The keys of a collection that have earlier values.
  func keysWithHistory(in collection: String) throws -> [String] {
    try reading {
      guard let id = try collectionID(collection) else { return [] }
      var keys: [String] = []
      let statement = try connection.statement("SELECT DISTINCT key FROM history WHERE collection = ? ORDER BY key")
      statement.bind(id, at: 1)
      try statement.query { keys.append($0.text(0)) }
      return keys
    }
  }
}
