import CofferStorage

extension Session {
  // MARK: Collections

  func collectionID(_ name: String) throws -> Int64? {
    let key = ByteString(name)
    if let id = collectionIDs[key] { return id }
    let statement = try connection.statement("SELECT id FROM collections WHERE name = ?")
    statement.bind(name, at: 1)
    let id = try statement.first { $0.integer(0) }
    if let id { collectionIDs[key] = id }
    return id
  }

  func makeCollection(_ name: String) throws -> Int64 {
    if let id = try collectionID(name) { return id }
    let statement = try connection.statement("INSERT INTO collections(name) VALUES (?) RETURNING id")
    statement.bind(name, at: 1)
    guard let id = try statement.first({ $0.integer(0) }) else {
      throw StorageError.damaged(part: "collections", reason: "a new collection got no id")
    }
    collectionIDs[ByteString(name)] = id
    return id
  }

  // MARK: Cache

  /// Whether the cache shows this transaction's snapshot: from its second read on.
  ///
  /// What others changed since the cache was used last is dropped from it then.
  func isCacheUsable() throws -> Bool {
    guard hasRead else {
      hasRead = true
      return false
    }
    guard !isCacheCurrent else { return true }
    isCacheCurrent = true
    let last = try changeLog.lastSequence()
    defer { cache.snapshot = last }
    guard !cache.isEmpty, last != cache.snapshot else { return true }
    guard last > cache.snapshot, let rows = try changeLog.rows(after: cache.snapshot) else {
      cache.removeAll()
      return true
    }
    for row in rows {
      if row.changes.isAllCleared || row.changes.collections.values.contains(where: { $0.isCleared || $0.isUnlisted }) {
        cache.removeAll()
        break
      }
      for (id, change) in row.changes.collections {
        for key in change.keys.keys { cache.remove(key, in: id) }
      }
    }
    return true
  }
}
