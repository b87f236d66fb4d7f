import CofferStorage

extension Session {
  // MARK: One item

  /// Sets both values of an item.
  func set(_ item: HeldItem, _ key: String, in collection: String) throws {
    // Not by `changing`: a closure for both ways is made, with all that it refers to, on either.
    if try needsOwnTransaction() { return try inTransaction { try set(item, key, in: collection) } }
    try changingInTransaction {
      let stored = try makeCollection(collection)
      let isObserved = observes(.insertion, in: collection) || observes(.update, in: collection)
      // Most of the time nobody asks what was there.
      if isObserved || stored.history != nil || stored.isSealed || item.isSealed {
        try set(item, over: try storedItem(key, in: collection), key, in: collection, stored)
      } else if let kind = try upsert(item, key, inCollection: stored.id) {
        recordUnobserved(kind, key, in: collection, id: stored.id)
      }
    }
  }

  private func set(
    _ item: HeldItem, over old: HeldItem?, _ key: String, in collection: String, _ stored: StoredCollection
  ) throws {
    let new = try fitted(item, key, in: collection, stored, present: old)
    if stored.history != nil, old == new { return }
    let kind = try keepingHistory(of: key, in: stored) { try upsert(new, key, inCollection: stored.id) }
    if let kind { record(kind, key, in: collection, id: stored.id, old: old, new: new) }
  }

  /// - Returns: nil for an equal value, which changes nothing: no version, no change, no page.
  private func upsert(_ item: HeldItem, _ key: String, inCollection id: Int64) throws -> ChangeKind? {
    let version = try newVersion()
    let statement = try connection.statement(
      """
      INSERT INTO items VALUES (?1, ?2, ?6, ?7, ?3, ?5, ?4) ON CONFLICT DO UPDATE
      SET type = ?3, data = ?4, metadata = ?5, version = updated(?6), modified = ?7
      WHERE type <> ?3 OR data <> ?4 OR metadata IS NOT ?5
      """)
    statement.bind(id, at: 1)
    statement.bind(Int64(item.object.kind.rawValue), at: 3)
    statement.bind(item.metadata?.tagged, at: 5)
    statement.bind(version, at: 6)
    statement.bind(transaction.time, at: 7)
    return try key.withUTF8Bytes { key in
      try item.object.withUnsafeBytes { data in
        statement.bind(borrowingText: key, at: 2)
        statement.bind(borrowing: data, at: 4)
        return switch try connection.runUpsert(statement) {
        case .inserted: .inserted
        case .updated: .updated
        case .unchanged: nil
        }
      }
    }
  }

  /// Changes one value of an item that is there.
  ///
  /// - Parameter value: nil for metadata that is removed.
  /// - Returns: Whether there was anything to change.
  func replace(_ part: ItemPart, _ value: StoredValue?, _ key: String, in collection: String) throws -> Bool {
    try changing {
      guard let stored = try storedCollection(collection) else { return false }
      let isObserved = observes(.update, in: collection, part)
      let needsOld = isObserved || stored.history != nil || stored.isSealed
      let old = needsOld ? try storedItem(key, in: collection) : nil
      // Nothing to replace, and so nothing to seal.
      if stored.isSealed, old == nil { return false }
      let present = part == .object ? old?.object.stored : old?.metadata
      let value = try value.map { try fitted($0, part, key, in: collection, stored, present: present) }
      let new = old.map { old in
        part == .object
          ? HeldItem(object: value.map(HeldValue.init) ?? old.object, metadata: old.metadata)
          : HeldItem(object: old.object, metadata: value)
      }
      if stored.history != nil, old == new { return false }
      let isChanged = try keepingHistory(of: key, in: stored) {
        try update(part, value, key, inCollection: stored.id)
      }
      guard isChanged else { return false }
      record(.updated, key, in: collection, id: stored.id, part, old: old, new: new)
      return true
    }
  }

  /// - Returns: Whether there was anything to change.
  private func update(
    _ part: ItemPart, _ value: StoredValue?, _ key: String, inCollection id: Int64
  ) throws -> Bool {
    let version = try newVersion()
    let statement = try connection.statement(
      part == .object
        ? """
        UPDATE items SET type = ?3, data = ?4, version = ?5, modified = ?6
        WHERE collection = ?1 AND key = ?2 AND (type <> ?3 OR data <> ?4)
        """
        : """
        UPDATE items SET metadata = ?4, version = ?5, modified = ?6
        WHERE collection = ?1 AND key = ?2 AND metadata IS NOT ?4
        """)
    statement.bind(id, at: 1)
    statement.bind(key, at: 2)
    if part == .object { statement.bind(Int64(value?.kind.rawValue ?? 0), at: 3) }
    statement.bind(part == .object ? value?.bytes : value?.tagged, at: 4)
    statement.bind(version, at: 5)
    statement.bind(transaction.time, at: 6)
    try statement.run()
    return connection.changeCount > 0
  }

  /// Announces a key as changed.
  package func touch(_ part: ItemPart?, _ key: String, in collection: String) throws {
    try changing {
      guard let id = try collectionID(collection), let item = try storedItem(key, in: collection) else { return }
      record(.touched, key, in: collection, id: id, part, old: item, new: item)
    }
  }

  @discardableResult
  func remove(_ key: String, in collection: String) throws -> Bool {
    try changing {
      guard let stored = try storedCollection(collection) else { return false }
      let old = observes(.removal, in: collection) ? try storedItem(key, in: collection) : nil
      let isRemoved = try keepingHistory(of: key, in: stored) {
        let statement = try connection.statement("DELETE FROM items WHERE collection = ? AND key = ?")
        statement.bind(stored.id, at: 1)
        statement.bind(key, at: 2)
        try statement.run()
        return connection.changeCount > 0
      }
      guard isRemoved else { return false }
      record(.removed, key, in: collection, id: stored.id, old: old)
      return true
    }
  }

  // MARK: Many items

  func remove(_ keys: some Sequence<String>, in collection: String) throws {
    try changingTogether { for key in keys { try remove(key, in: collection) } }
  }

  /// Removes a collection's items, and with them every trace of its keys and its name.
  func removeAll(in collection: String) throws {
    try changingTogether {
      // Also where the vault's list says something else of it: nothing is shown, or stays.
      guard let stored = try rowOfCollection(collection) else { return }
      let id = stored.id
      try clear(collection, id, isSealed: stored.isSealed)
      for sql: StaticString in [
        "DELETE FROM items WHERE collection = ?", "DELETE FROM history WHERE collection = ?",
        // One that is sealed stays so.
        "DELETE FROM collections WHERE id = ? AND flags & ~2 = 0",
        "UPDATE collections SET flags = flags & ~2, history_count = NULL, history_age = NULL WHERE id = ?",
      ] {
        let statement = try connection.statement(sql)
        statement.bind(id, at: 1)
        try statement.run()
      }
      try changeLog.forget(id)
    }
  }

  func removeAllInAllCollections() throws {
    try changingTogether {
      var collections: [(id: Int64, name: String, isSealed: Bool)] = []
      try connection.statement("SELECT id, name, flags FROM collections ORDER BY name").query {
        let (name, flags) = ($0.text(1), $0.integer(2))
        try StoredCollection.check(flags: flags, of: name)
        collections.append(
          (try StoredCollection.checkedID($0.integer(0)), name, flags & StoredCollection.Flags.isSealed != 0))
      }
      guard !collections.isEmpty else { return }
      for (id, name, isSealed) in collections { try clear(name, id, isSealed: isSealed) }
      for sql: StaticString in [
        "DELETE FROM items", "DELETE FROM history", "DELETE FROM collections WHERE flags & ~2 = 0",
        "UPDATE collections SET flags = flags & ~2, history_count = NULL, history_age = NULL",
      ] {
        try connection.statement(sql).run()
      }
      recordClearingOfAll()
      try changeLog.forget(nil)
    }
  }

  /// Says that a collection is going, to observers key by key.
  private func clear(_ collection: String, _ id: Int64, isSealed: Bool) throws {
    let isObserved = observes(.removal, in: collection)
    var keys: [String] = []
    if isObserved || transaction.isFeedObserved {
      let cursor = Cursor(
        connection: connection, collection: id, isSealed: isSealed, range: .all, columns: isObserved ? .rows : .keys)
      while try cursor.advance() {
        let key = cursor.key
        keys.append(key)
        if isObserved { record(.removed, key, in: collection, id: id, old: try cursor.item()) }
      }
    }
    recordClearing(of: collection, id: id, keys: keys)
  }
}
