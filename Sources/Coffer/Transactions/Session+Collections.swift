import CofferStorage

/// A row of the table `collections`.
package struct StoredCollection {
  /// The bits of its column `flags`.
  package enum Flags {
    /// Its values are sealed under the vault's key.
    package static let isSealed: Int64 = 1
    /// Its items leave their earlier values behind.
    package static let keepsHistory: Int64 = 2
    package static let known = isSealed | keepsHistory
  }

  /// Above 0.
  let id: Int64
  var isSealed = false
  /// nil where no history is kept.
  var history: HistoryLimits?

  /// Refuses a collection in which a newer version may have put something else, or the same in another form.
  package static func check(flags: Int64, of name: String) throws {
    guard flags & ~Flags.known == 0 else {
      throw StorageError.newerFormat(
        part: "collection \"\(name)\"", found: Int(flags), supported: Int(Flags.known))
    }
  }

  /// What stands in a row, if it is an id.
  package static func checkedID(_ id: Int64) throws -> Int64 {
    guard id > 0 else { throw StorageError.damaged(part: "collections", reason: "there is one with the id \(id)") }
    return id
  }
}

extension Session {
  // MARK: Collections

  func collectionID(_ name: String) throws -> Int64? {
    try storedCollection(name)?.id
  }

  func storedCollection(_ name: String) throws -> StoredCollection? {
    let unlockCount = core.vault.unlockCount.load(ordering: .acquiring)
    if unlockCount != knownUnlockCount {
      // What was read with the vault locked was not compared with its list.
      knownCollections.removeAll()
      knownUnlockCount = unlockCount
    }
    if let known = knownCollections[name] { return known }
    let collection = try rowOfCollection(name)
    if core.vault.isThere.load(ordering: .relaxed) {
      try checkDeclaration(of: name, isSealed: collection?.isSealed ?? false)
    }
    if let collection { knownCollections[name] = collection }
    return collection
  }

  /// What the table says, whether the vault's list says so, too, or not.
  func rowOfCollection(_ name: String) throws -> StoredCollection? {
    let statement = try connection.statement(
      "SELECT id, flags, history_count, history_age FROM collections WHERE name = ?")
    statement.bind(name, at: 1)
    return try statement.first { row in
      try StoredCollection.check(flags: row.integer(1), of: name)
      return StoredCollection(
        id: try StoredCollection.checkedID(row.integer(0)),
        isSealed: row.integer(1) & StoredCollection.Flags.isSealed != 0,
        history: row.integer(1) & StoredCollection.Flags.keepsHistory == 0
          ? nil : try HistoryLimits(storedCount: row.integer(2), age: row.isNull(3) ? nil : row.integer(3)))
    }
  }

  func makeCollection(_ name: String) throws -> StoredCollection {
    try storedCollection(name) ?? insertCollection(name)
  }

  func insertCollection(_ name: String) throws -> StoredCollection {
    let statement = try connection.statement("INSERT INTO collections(name) VALUES (?) RETURNING id")
    statement.bind(name, at: 1)
    guard let id = try statement.first({ try StoredCollection.checkedID($0.integer(0)) }) else {
      throw StorageError.damaged(part: "collections", reason: "a new collection got no id")
    }
    let collection = StoredCollection(id: id)
    knownCollections[name] = collection
    return collection
  }

  // MARK: Cache

  /// Whether the cache shows this transaction's snapshot: from its second read on.
  ///
  /// What others changed since the cache was used last is dropped from it then.
  func isCacheUsable() throws -> Bool {
    guard transaction.hasRead else {
      transaction.hasRead = true
      return false
    }
    guard !transaction.isCacheCurrent else { return true }
    transaction.isCacheCurrent = true
    let last = try changeLog.lastSequence()
    defer { cache.snapshot = last }
    guard !cache.isEmpty, last != cache.snapshot else { return true }
    guard last > cache.snapshot, let commits = try changeLog.rows(after: cache.snapshot, { try $2() }) else {
      cache.removeAll()
      return true
    }
    for changes in commits {
      if changes.isAllCleared || changes.collections.values.contains(where: { $0.isCleared || $0.isUnlisted }) {
        cache.removeAll()
        break
      }
      for (id, change) in changes.collections {
        for key in change.keys.keys { cache.remove(key, in: id) }
      }
    }
    return true
  }
}
