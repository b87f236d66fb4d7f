import CofferStorage

extension Session {
  // MARK: One item

  /// Sets both values of an item.
  func set(_ object: StoredValue, metadata: StoredValue?, _ key: String, in collection: String) throws {
    try changing {
      let id = try makeCollection(collection)
      let isObserved = observes(.insertion, in: collection) || observes(.update, in: collection)
      let old = isObserved ? try storedItem(key, in: collection) : nil
      // An equal value changes nothing: no version, no change, no page.
      let statement = try connection.statement(
        """
        INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6) ON CONFLICT DO UPDATE
        SET type = ?3, data = ?4, metadata = ?5, version = successor(version), modified = ?6
        WHERE type <> ?3 OR data <> ?4 OR metadata IS NOT ?5
        """)
      statement.bind(id, at: 1)
      statement.bind(key, at: 2)
      statement.bind(Int64(object.kind.rawValue), at: 3)
      statement.bind(object.bytes, at: 4)
      statement.bind(metadata?.tagged, at: 5)
      statement.bind(time, at: 6)
      let kind: ChangeSet.Kind
      switch try connection.runUpsert(statement) {
      case .inserted: kind = .inserted
      case .updated: kind = .updated
      case .unchanged: return
      }
      let new = isObserved ? StoredItem(object: object, metadata: metadata) : nil
      record(kind, key, in: collection, id: id, old: old, new: new)
    }
  }

  /// Changes one value of an item that is there.
  ///
  /// - Parameter value: nil for metadata that is removed.
  /// - Returns: Whether there was anything to change.
  private func replace(_ part: ItemPart, _ value: StoredValue?, _ key: String, in collection: String) throws -> Bool {
    try changing {
      guard let id = try collectionID(collection) else { return false }
      let old = observes(.update, in: collection, part) ? try storedItem(key, in: collection) : nil
      let statement = try connection.statement(
        part == .object
          ? """
          UPDATE items SET type = ?3, data = ?4, version = version + 1, modified = ?5
          WHERE collection = ?1 AND key = ?2 AND (type <> ?3 OR data <> ?4)
          """
          : """
          UPDATE items SET metadata = ?4, version = version + 1, modified = ?5
          WHERE collection = ?1 AND key = ?2 AND metadata IS NOT ?4
          """)
      statement.bind(id, at: 1)
      statement.bind(key, at: 2)
      if part == .object { statement.bind(Int64(value?.kind.rawValue ?? 0), at: 3) }
      statement.bind(part == .object ? value?.bytes : value?.tagged, at: 4)
      statement.bind(time, at: 5)
      try statement.run()
      guard connection.changeCount > 0 else { return false }
      var new = old
      if part == .object, let value { new?.object = value } else { new?.metadata = value }
      record(.updated, key, in: collection, id: id, part, old: old, new: new)
      return true
    }
  }

  /// Announces a key as changed.
  func touch(_ part: ItemPart?, _ key: String, in collection: String) throws {
    try changing {
      guard let id = try collectionID(collection), let item = try storedItem(key, in: collection) else { return }
      record(.touched, key, in: collection, id: id, part, old: item, new: item)
    }
  }

  @discardableResult
  func remove(_ key: String, in collection: String) throws -> Bool {
    try changing {
      guard let id = try collectionID(collection) else { return false }
      let old = observes(.removal, in: collection) ? try storedItem(key, in: collection) : nil
      let statement = try connection.statement("DELETE FROM items WHERE collection = ? AND key = ?")
      statement.bind(id, at: 1)
      statement.bind(key, at: 2)
      try statement.run()
      guard connection.changeCount > 0 else { return false }
      record(.removed, key, in: collection, id: id, old: old)
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
      guard let id = try collectionID(collection) else { return }
      try clear(collection, id)
      for sql: StaticString in [
        "DELETE FROM items WHERE collection = ?", "DELETE FROM history WHERE collection = ?",
        // One that was declared to be of a certain kind stays declared.
        "DELETE FROM collections WHERE id = ? AND flags = 0",
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
      var names: [(id: Int64, name: String)] = []
      try connection.statement("SELECT id, name FROM collections ORDER BY name").query {
        names.append(($0.integer(0), $0.text(1)))
      }
      guard !names.isEmpty else { return }
      for (id, name) in names { try clear(name, id) }
      for sql: StaticString in [
        "DELETE FROM items", "DELETE FROM history", "DELETE FROM collections WHERE flags = 0",
      ] {
        try connection.statement(sql).run()
      }
      recordClearingOfAll()
      try changeLog.forget(nil)
    }
  }

  /// Says that a collection is going, to observers key by key.
  private func clear(_ collection: String, _ id: Int64) throws {
    let isObserved = observes(.removal, in: collection)
    var keys: [String] = []
    if isObserved || isFeedObserved {
      let cursor = Cursor(connection: connection, collection: id, range: .all, columns: isObserved ? .rows : .keys)
      while let row = try cursor.next() {
        keys.append(row.key)
        if isObserved, let object = row.object {
          let old = StoredItem(object: object, metadata: row.metadata)
          record(.removed, row.key, in: collection, id: id, old: old)
        }
      }
    }
    recordClearing(of: collection, id: id, keys: keys)
  }
}

extension StoredValue {
  /// Kind and bytes in one, as metadata is stored.
  var tagged: [UInt8] { [kind.rawValue] + bytes }
}

extension Session {
  /// Sets what `encode` gives.
  ///
  /// All of it in one transaction, from the sanitizers to the post-sanitizers.
  func setAndTell(
    _ key: String, in collection: String, encode: (DatabaseCore) throws -> (StoredValue, StoredValue?)
  ) throws {
    try inTransaction {
      let (object, metadata) = try encoding(encode)
      try set(object, metadata: metadata, key, in: collection)
      try didSet(object, metadata, key, in: collection)
    }
  }

  /// Replaces one value with what `encode` gives, as `setAndTell`.
  func replaceAndTell(
    _ part: ItemPart, _ key: String, in collection: String, encode: (DatabaseCore) throws -> StoredValue?
  ) throws {
    try inTransaction {
      let value = try encoding(encode)
      guard try replace(part, value, key, in: collection) else { return }
      try didSet(part == .object ? value : nil, part == .metadata ? value : nil, key, in: collection)
    }
  }

  /// Tells the post-sanitizers what was stored.
  func didSet(_ object: StoredValue?, _ metadata: StoredValue?, _ key: String, in collection: String) throws {
    guard let rules = core.rules(of: collection) else { return }
    func tell(_ sanitizer: CollectionRules.PostSanitizer?, _ stored: StoredValue?) throws {
      guard let sanitizer, let stored else { return }
      let value = try stored.decoded(as: Value.self, key, in: collection)
      try encoding { _ in sanitizer(collection, key, value) }
    }
    try tell(rules.objectPostSanitizer, object)
    try tell(rules.metadataPostSanitizer, metadata)
  }
}
