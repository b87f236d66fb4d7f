import CofferStorage

extension Session {
  // MARK: One item

  /// Both values of an item, from the cache if possible.
  package func item(_ key: String, in collection: String) throws -> HeldItem? {
    try reading {
      guard cache.limit > 0, try isCacheUsable() else { return try storedItem(key, in: collection) }
      guard let id = try collectionID(collection) else { return nil }
      if let known = cache.item(key, in: id) { return known }
      let item = try storedItem(key, in: collection)
      cache.insert(item, key, in: id)
      return item
    }
  }

  func has(_ key: String, in collection: String) throws -> Bool {
    try reading { try collectionID(collection).map { try items.has(key, in: $0, at: transaction.time) } ?? false }
  }

  /// Both values of an item, from the tables.
  func storedItem(_ key: String, in collection: String) throws -> HeldItem? {
    try storedCollection(collection).flatMap { try items.item(key, in: $0, at: transaction.time) }
  }

  /// An item with everything about it.
  package func row(_ key: String, in collection: String) throws -> Items.Row? {
    try reading { try storedCollection(collection).flatMap { try items.row(key, in: $0, at: transaction.time) } }
  }

  package func info(_ key: String, in collection: String) throws -> ItemInfo? {
    try reading {
      try collectionID(collection).flatMap { try items.info(key, in: $0, named: collection, at: transaction.time) }
    }
  }

  /// The version of an item, or 0.
  package func version(_ key: String, in collection: String) throws -> CommitNumber {
    try reading { try collectionID(collection).flatMap { try items.version(key, in: $0, at: transaction.time) } ?? 0 }
  }

  // MARK: Counts and lists

  package func collectionNames() throws -> [String] {
    try reading { try collections.namesInUse(at: transaction.time) }
  }

  /// The names of all collections, even empty and unreadable ones; reads no item.
  package func namesOfAllCollections() throws -> [String] {
    try reading { try collections.names().values.sorted() }
  }

  /// - Parameter collection: nil for all collections.
  package func count(in collection: String?) throws -> Int {
    try reading {
      guard let collection else { return try items.count(in: nil, at: transaction.time) }
      return try collectionID(collection).map { try items.count(in: $0, at: transaction.time) } ?? 0
    }
  }

  package func keys(in collection: String, _ range: KeyRange) throws -> [String] {
    try reading {
      guard let cursor = try cursor(collection, range, .keys) else { return [] }
      var keys: [String] = []
      while try cursor.advance() { keys.append(cursor.key) }
      return keys
    }
  }

  func infos(in collection: String) throws -> [ItemInfo] {
    try reading {
      try collectionID(collection).map { try items.infos(in: $0, named: collection, at: transaction.time) } ?? []
    }
  }

  func itemsDue(before date: Int64) throws -> [ItemInfo] {
    try reading { try items.due(before: date, at: transaction.time) }
  }

  /// Whether an item with these dates has expired for this transaction.
  package func isExpired(_ dates: ItemDates) -> Bool { dates.isExpired(at: transaction.time) }

  func expiry(_ key: String, in collection: String) throws -> Int64? {
    try reading { try collectionID(collection).flatMap { try items.expiry(key, in: $0, at: transaction.time) } }
  }

  func hasItemsIncludingExpired(_ collection: String) throws -> Bool {
    try reading { try collectionID(collection).map { try items.areAny(in: $0) } ?? false }
  }

  func nextExpiry() throws -> Int64? {
    try reading { try items.nextExpiry(after: transaction.time) }
  }

  func hasExpiredItems() throws -> Bool {
    try reading { try items.nextExpiry().map { $0 <= transaction.time } ?? false }
  }

  // MARK: Enumerations

  private func cursor(_ collection: String, _ range: KeyRange, _ columns: Cursor.Columns) throws -> Cursor? {
    try storedCollection(collection).map { stored in
      Cursor(
        connection: connection, collection: stored.id, isSealed: stored.isSealed, range: range, columns: columns,
        at: transaction.time)
    }
  }

  /// Passes the items of a collection to `body` in the order of their keys, as they are now, regardless of changes by
  /// `body`; stops when it returns false.
  ///
  /// - Parameter collection: nil for all collections, in the order of their names.
  package func enumerate(
    _ collection: String?, _ range: KeyRange, _ columns: Cursor.Columns,
    _ body: (String, Cursor) throws -> Bool
  ) throws {
    // All cursors are opened at the start, so that later inserts into other collections are not seen.
    let isAlone = isAutocommitting
    let pairs = try reading {
      let pairs = try (collection.map { [$0] } ?? collectionNames()).compactMap { name in
        try cursor(name, range, columns).map { (name, $0) }
      }
      // Without an enclosing transaction, the snapshot ends with this read.
      if isAlone { for (_, cursor) in pairs { try cursor.loadRest() } }
      return pairs
    }
    let earlierCount = cursors.count
    cursors += pairs.map(\.1)
    defer { cursors.removeLast(cursors.count - earlierCount) }
    // Includes errors of reads that `body` makes through the cursor.
    try CofferError.translating {
      for (name, cursor) in pairs {
        while try reading({ try cursor.advance() }) {
          guard try body(name, cursor) else { return }
        }
      }
    }
  }
}
