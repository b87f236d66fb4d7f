import CofferStorage

/// The table `history`: earlier values of items.
struct History {
  let connection: SQLiteConnection

  // MARK: Reading

  /// An earlier value, with everything about it.
  struct Row {
    let item: HeldItem
    let version: CommitNumber
    let modified: Int64
    let ended: Int64
    let time: Int64
    let author: String?
    let endedBy: String?
  }

  /// The earlier values of an item, newest first.
  ///
  /// - Parameter isSealed: As in `Items.item(_:isSealed:)`.
  func rows(_ key: String, in collection: Int64, isSealed: Bool?) throws -> [Row] {
    try connection.statement(
      """
      SELECT type, data, metadata, expires, NULL, version, modified, ended, time, author, ended_by FROM history
      WHERE collection = ? AND key = ? ORDER BY version DESC
      """, collection, key
    ).map { row in
      Row(
        item: try Items.item(row, isSealed: isSealed), version: row.integer(5), modified: row.integer(6),
        ended: row.integer(7), time: row.integer(8), author: row.optionalText(9), endedBy: row.optionalText(10))
    }
  }

  /// One earlier value of an item.
  func item(_ version: CommitNumber, _ key: String, in collection: StoredCollection) throws -> HeldItem? {
    try connection.statement(
      "SELECT type, data, metadata, expires, NULL FROM history WHERE collection = ? AND key = ? AND version = ?",
      collection.id, key, version
    ).first { try Items.item($0, isSealed: collection.isSealed) }
  }

  /// The keys of a collection that have earlier values.
  func keys(in collection: Int64) throws -> [String] {
    try connection.statement("SELECT DISTINCT key FROM history WHERE collection = ? ORDER BY key", collection).map {
      $0.text(0)
    }
  }

  // MARK: Writing

  /// Keeps an item before it changes in commit `version`, and drops versions beyond the limits of its collection.
  ///
  /// Values set in the same commit are not kept: no other transaction has seen them.
  ///
  /// - Parameters:
  ///   - expired: When it expired, if that is why it is removed.
  ///   - time: The time of the commit.
  ///   - author: nil for no one.
  func keep(
    _ key: String, in collection: Int64, _ limits: HistoryLimits, endingWith version: CommitNumber, expired: Int64?,
    time: Int64, by author: String?
  ) throws {
    try connection.statement(
      """
      INSERT INTO history(collection, key, version, modified, ended, time, type, expires, author, ended_by, metadata, data)
      SELECT collection, key, version, modified, ?3, ?4, type, expires, author, ?5, metadata, data FROM items
      WHERE collection = ?1 AND key = ?2 AND version < ?3
      """, collection, key, version, expired ?? time, author
    ).run()
    guard connection.changeCount > 0 else { return }
    try dropExcess(of: key, in: collection, limits)
    try dropOld(in: collection, limits, time: time)
  }

  /// Keeps all items of a collection, as before their removal, and drops versions beyond its limits.
  func keepAll(
    in collection: Int64, _ limits: HistoryLimits, endingWith version: CommitNumber, time: Int64, by author: String
  ) throws {
    try connection.statement(
      """
      INSERT INTO history(collection, key, version, modified, ended, time, type, expires, author, ended_by, metadata, data)
      SELECT collection, key, version, modified, ?2, ?3, type, expires, author, ?4, metadata, data FROM items
      WHERE collection = ?1 AND version < ?2
      """, collection, version, time, author
    ).run()
    guard connection.changeCount > 0 else { return }
    try drop(in: collection, beyond: limits, time: time)
  }

  /// Keeps a value that was never in the store: one that was set elsewhere and lost.
  ///
  /// - Parameters:
  ///   - version: Unique among the values of the key.
  ///   - ended: The number of the current commit.
  func insert(
    _ item: HeldItem, _ key: String, in collection: StoredCollection, version: CommitNumber, modified: Int64,
    ended: Int64, time: Int64, author: String?, endedBy: String
  ) throws {
    try connection.statement(
      """
      INSERT INTO history(collection, key, type, data, metadata, version, modified, ended, time, expires, author, ended_by)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
      """, collection.id, key, Int64(item.object.kind.rawValue), item.object, item.metadata?.tagged, version, modified,
      ended, time, item.dates.expires, author, endedBy
    ).run()
    try dropExcess(of: key, in: collection.id, collection.history ?? HistoryLimits())
  }

  private func dropExcess(of key: String, in collection: Int64, _ limits: HistoryLimits) throws {
    try connection.statement(
      """
      DELETE FROM history WHERE collection = ?1 AND key = ?2 AND version <= (
        SELECT version FROM history WHERE collection = ?1 AND key = ?2 ORDER BY version DESC LIMIT 1 OFFSET ?3)
      """, collection, key, Int64(limits.maximumCount)
    ).run()
  }

  private func dropOld(in collection: Int64, _ limits: HistoryLimits, time: Int64) throws {
    guard let age = limits.age else { return }
    try connection.statement("DELETE FROM history WHERE collection = ? AND time < ?", collection, time - age).run()
  }

  /// Drops versions that are too old, in all collections.
  func dropOld(time: Int64) throws {
    // This is all without history.
    guard try connection.statement("SELECT 1 FROM history LIMIT 1").hasRow() else { return }
    var kept: [(id: Int64, limits: HistoryLimits)] = []
    try connection.statement("SELECT id, history_count, history_age FROM collections WHERE flags & ~5 = 2").query {
      row in
      kept.append(
        (row.integer(0), try HistoryLimits(storedCount: row.integer(1), age: row.isNull(2) ? nil : row.integer(2))))
    }
    for (id, limits) in kept { try dropOld(in: id, limits, time: time) }
  }

  /// Drops versions beyond new limits of a collection.
  func drop(in collection: Int64, beyond limits: HistoryLimits, time: Int64) throws {
    try dropOld(in: collection, limits, time: time)
    try connection.statement(
      """
      DELETE FROM history WHERE collection = ?1 AND version <= (
        SELECT same.version FROM history AS same WHERE same.collection = ?1 AND same.key = history.key
        ORDER BY same.version DESC LIMIT 1 OFFSET ?2)
      """, collection, Int64(limits.maximumCount)
    ).run()
  }

  /// Erases the history of a collection.
  ///
  /// - Returns: Whether there was any.
  func erase(in collection: Int64) throws -> Bool {
    try connection.statement("DELETE FROM history WHERE collection = ?1", collection).run()
    return connection.changeCount > 0
  }

  /// Replaces the bytes of an earlier value by others for the same value.
  func rewrite(_ item: HeldItem, _ key: String, in collection: Int64, version: CommitNumber) throws {
    try connection.statement(
      "UPDATE history SET type = ?3, data = ?4, metadata = ?5 WHERE collection = ?1 AND key = ?2 AND version = ?6",
      collection, key, Int64(item.object.kind.rawValue), item.object, item.metadata?.tagged, version
    ).run()
  }
}
