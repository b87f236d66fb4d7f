import CofferStorage

extension Session {
  // MARK: Collections

  func collectionID(_ name: String) throws -> Int64? {
    try storedCollection(name)?.id
  }

  func storedCollection(_ name: String) throws -> StoredCollection? {
    let unlockCount = core.vault.unlockCount.load(ordering: .acquiring)
    if unlockCount != known.unlockCount {
      // Collections looked up while the vault was locked have not been checked against its list.
      knownCollections.removeAll()
      known.unlockCount = unlockCount
    }
    if let known = knownCollections[name] { return known }
    let collection = try collections.collection(named: name)
    if core.vault.isThere.load(ordering: .relaxed) {
      try checkDeclaration(of: name, isSealed: collection?.isSealed ?? false)
      if let collection, !collection.isSealed { try checkParent(of: name) }
    }
    if let collection { knownCollections[name] = collection }
    return collection
  }

  func makeCollection(_ name: String) throws -> StoredCollection {
    guard let stored = try storedCollection(name) else { return try insertCollection(name) }
    return stored.isRemoved ? try bringBack(stored, name) : stored
  }

  /// Makes an environment that was removed before; what it was, sealed or with a history, it is again.
  private func bringBack(_ stored: StoredCollection, _ name: String) throws -> StoredCollection {
    var stored = stored
    stored.isRemoved = false
    try collections.setRemoved(false, stored.id)
    knownCollections[name] = stored
    return stored
  }

  /// Whether the values of a collection are sealed, or would be if it were created.
  func isSealedOrWillBe(_ name: String) throws -> Bool {
    if let stored = try storedCollection(name) { return stored.isSealed }
    return try CollectionEnvironment(collection: name).map { try storedCollection($0.parent)?.isSealed ?? false }
      ?? false
  }

  private func insertCollection(_ name: String) throws -> StoredCollection {
    // A secret in one environment is a secret in all of them.
    if try isSealedOrWillBe(name) {
      _ = try setSealedAlone(true, name)
      if let collection = knownCollections[name] { return collection }
    }
    return try insertRow(name)
  }

  func insertRow(_ name: String) throws -> StoredCollection {
    let collection = try collections.insert(name)
    knownCollections[name] = collection
    return collection
  }

  // MARK: Cache

  /// Whether the cache shows this transaction's snapshot: true from its second read on.
  ///
  /// The first time, this drops from the cache what others have changed since it was last used.
  func isCacheUsable() throws -> Bool {
    guard transaction.hasRead else {
      transaction.hasRead = true
      return false
    }
    guard !transaction.isCacheCurrent else { return true }
    transaction.isCacheCurrent = true
    let last = try changeLog.lastNumber()
    defer { cache.commit = last }
    guard !cache.isEmpty, last != cache.commit else { return true }
    guard last > cache.commit,
      let commits = try changeLog.rows(after: cache.commit, { _, changes in try changes() })
    else {
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
