import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The table `items`: the current item of every key.
///
/// Items that have expired by the reader's time do not exist for it: until the row is removed, only
/// ``expired(at:)`` finds it.
package struct Items {
  let connection: SQLiteConnection

  // MARK: Reading

  /// Both values of an item.
  func item(_ key: String, in collection: StoredCollection, at time: Int64) throws -> HeldItem? {
    try row(
      key, in: collection.id, at: time,
      """
      SELECT type, data, metadata, expires, due FROM items
      WHERE collection = ? AND key = ? AND (expires IS NULL OR expires > ?)
      """
    ) {
      try Self.item($0, isSealed: collection.isSealed)
    }
  }

  func has(_ key: String, in collection: Int64, at time: Int64) throws -> Bool {
    try row(
      key, in: collection, at: time,
      "SELECT 1 FROM items WHERE collection = ? AND key = ? AND (expires IS NULL OR expires > ?)"
    ) { _ in true } ?? false
  }

  /// Everything about an item.
  package struct Row {
    package let item: HeldItem
    package let version: CommitNumber
    package let modified: Int64
    /// Its author; nil if its collection keeps no history.
    package let author: String?
  }

  func row(_ key: String, in collection: StoredCollection, at time: Int64) throws -> Row? {
    try row(
      key, in: collection.id, at: time,
      """
      SELECT type, data, metadata, expires, due, version, modified, author FROM items
      WHERE collection = ? AND key = ? AND (expires IS NULL OR expires > ?)
      """
    ) {
      Row(
        item: try Self.item($0, isSealed: collection.isSealed), version: $0.integer(5), modified: $0.integer(6),
        author: $0.optionalText(7))
    }
  }

  func info(_ key: String, in collection: Int64, named name: String, at time: Int64) throws -> ItemInfo? {
    try row(
      key, in: collection, at: time,
      """
      SELECT key, type, length(data), version, modified, expires, due FROM items
      WHERE collection = ? AND key = ? AND (expires IS NULL OR expires > ?)
      """
    ) { try Self.info($0, collection: name) }
  }

  /// The version of an item; nil if there is none.
  func version(_ key: String, in collection: Int64, at time: Int64) throws -> CommitNumber? {
    try row(
      key, in: collection, at: time,
      "SELECT version FROM items WHERE collection = ? AND key = ? AND (expires IS NULL OR expires > ?)"
    ) { $0.integer(0) }
  }

  private func row<Result>(
    _ key: String, in collection: Int64, at time: Int64, _ sql: StaticString,
    _ body: (borrowing Statement.Row) throws -> Result
  ) throws -> Result? {
    // Not bound at once: a read would take longer.
    let statement = try connection.statement(sql)
    statement.bind(collection, at: 1)
    statement.bind(key, at: 2)
    statement.bind(time, at: 3)
    return try statement.first(body)
  }

  /// - Parameter collection: nil stands for all.
  func count(in collection: Int64?, at time: Int64) throws -> Int {
    // Counting all items and the few expired ones does not read each row.
    return try connection.statement(
      collection == nil
        ? "SELECT (SELECT count(*) FROM items) - (SELECT count(*) FROM items WHERE expires <= ?2)"
        : """
        SELECT (SELECT count(*) FROM items WHERE collection = ?1)
          - (SELECT count(*) FROM items WHERE expires <= ?2 AND collection = ?1)
        """, collection, time
    ).first { Int($0.integer(0)) } ?? 0
  }

  func infos(in collection: Int64, named name: String, at time: Int64) throws -> [ItemInfo] {
    try connection.statement(
      """
      SELECT key, type, length(data), version, modified, expires, due FROM items
      WHERE collection = ? AND (expires IS NULL OR expires > ?) ORDER BY key
      """, collection, time
    ).map { try Self.info($0, collection: name) }
  }

  /// The items due before a date, in that order, in all collections that this version can read.
  func due(before date: Int64, at time: Int64) throws -> [ItemInfo] {
    try connection.statement(
      """
      SELECT key, type, length(data), version, modified, expires, due, name FROM items JOIN collections ON id = collection
      WHERE due < ? AND (expires IS NULL OR expires > ?) AND flags & ? = 0 ORDER BY due, name, key
      """, date, time, ~StoredCollection.Flags.known
    ).map { try Self.info($0, collection: $0.text(7)) }
  }

  // MARK: Expired items

  /// When the next item expires after a time; nil if none will.
  func nextExpiry(after time: Int64 = .min) throws -> Int64? {
    try connection.statement("SELECT expires FROM items WHERE expires > ? ORDER BY expires LIMIT 1", time).first {
      $0.integer(0)
    }
  }

  /// When an item that is still stored expired; nil if it has not.
  func expiry(_ key: String, in collection: Int64, at time: Int64) throws -> Int64? {
    try row(
      key, in: collection, at: time,
      "SELECT expires FROM items WHERE collection = ? AND key = ? AND expires <= ?"
    ) { $0.integer(0) }
  }

  /// An item that has expired.
  struct ExpiredItem {
    let collection: String
    let key: String
    let expires: Int64
  }

  /// Whether there are any in a collection, expired or not.
  func areAny(in collection: Int64) throws -> Bool {
    try connection.statement("SELECT 1 FROM items WHERE collection = ? LIMIT 1", collection).hasRow()
  }

  /// Removes all items of a collection.
  func removeAll(in collection: Int64) throws {
    try connection.statement("DELETE FROM items WHERE collection = ?", collection).run()
  }

  /// Up to `count` items that have expired and that this version can remove.
  func expired(at time: Int64, atMost count: Int) throws -> [ExpiredItem] {
    try connection.statement(
      """
      SELECT name, key, expires FROM items JOIN collections ON id = collection
      WHERE expires <= ? AND flags & ? = 0 ORDER BY expires LIMIT ?
      """, time, ~StoredCollection.Flags.known, Int64(count)
    ).map { ExpiredItem(collection: $0.text(0), key: $0.text(1), expires: $0.integer(2)) }
  }

  /// Up to `count` items in a range of keys.
  ///
  /// - Parameter isSealed: As in `item(_:isSealed:)`.
  func items(
    in collection: Int64, isSealed: Bool?, _ range: KeyRange, atMost count: Int
  ) throws -> [(key: String, HeldItem)] {
    // Expired ones, too: they must be sealed like the rest.
    let cursor = Cursor(
      connection: connection, collection: collection, isSealed: isSealed, range: range, columns: .rows, at: .min)
    var items: [(key: String, HeldItem)] = []
    while items.count < count, try cursor.advance() { items.append((cursor.key, try cursor.item())) }
    return items
  }

  // MARK: Writing

  /// Sets both values of an item.
  ///
  /// - Parameters:
  ///   - author: The author; nil if the collection keeps no history.
  ///   - isUpdate: Whether the item probably exists; a wrong guess only takes longer.
  /// - Returns: nil for an equal value, which changes nothing: no version, no change, no page.
  func set(
    _ item: HeldItem, _ key: String, in collection: Int64, version: CommitNumber, time: Int64, author: String? = nil,
    isUpdate: Bool = false
  ) throws -> ChangeKind? {
    func run(_ sql: StaticString) throws -> SQLiteConnection.UpsertResult {
      try self.run(sql, item, key, in: collection, version: version, time: time, author: author)
    }
    // The common case.
    let isPlain = item.dates == .none && author == nil
    if isUpdate, isPlain, try run(Self.plainUpdate) != .unchanged { return .updated }
    return switch try run(isPlain ? Self.plainUpsert : Self.upsert) {
    case .inserted: .inserted
    case .updated: .updated
    case .unchanged: nil
    }
  }

  private static let upsert: StaticString = """
    INSERT INTO items VALUES (?1, ?2, ?6, ?7, ?3, ?8, ?9, ?10, ?5, ?4) ON CONFLICT DO UPDATE
    SET type = ?3, data = ?4, metadata = ?5, version = updated(?6), modified = ?7, expires = ?8, due = ?9, author = ?10
    WHERE type <> ?3 OR data <> ?4 OR metadata IS NOT ?5 OR expires IS NOT ?8 OR due IS NOT ?9
    """
  /// A literal NULL in the statement is cheaper than a bound one.
  private static let plainUpsert: StaticString = """
    INSERT INTO items VALUES (?1, ?2, ?6, ?7, ?3, NULL, NULL, NULL, ?5, ?4) ON CONFLICT DO UPDATE
    SET type = ?3, data = ?4, metadata = ?5, version = updated(?6), modified = ?7, expires = NULL, due = NULL, author = NULL
    WHERE type <> ?3 OR data <> ?4 OR metadata IS NOT ?5 OR expires IS NOT NULL OR due IS NOT NULL
    """
  /// Finds the row once and does not open the index of expiries; an upsert searches twice, and opens it.
  ///
  /// Changes nothing if the item is missing or equal, or has dates or an author: that is for the upsert.
  private static let plainUpdate: StaticString = """
    UPDATE items SET type = ?3, data = ?4, metadata = ?5, version = ?6, modified = ?7
    WHERE collection = ?1 AND key = ?2 AND (type <> ?3 OR data <> ?4 OR metadata IS NOT ?5)
      AND expires IS NULL AND due IS NULL AND author IS NULL
    """

  private func run(
    _ sql: StaticString, _ item: HeldItem, _ key: String, in collection: Int64, version: CommitNumber, time: Int64,
    author: String?
  ) throws -> SQLiteConnection.UpsertResult {
    let statement = try connection.statement(sql)
    statement.bind(collection, at: 1)
    statement.bind(Int64(item.object.kind.rawValue), at: 3)
    statement.bind(version, at: 6)
    statement.bind(time, at: 7)
    // Unbound parameters are NULL.
    item.metadata?.tagged.bind(to: statement, at: 5)
    if let expires = item.dates.expires { statement.bind(expires, at: 8) }
    if let due = item.dates.due { statement.bind(due, at: 9) }
    if let author { statement.bind(author, at: 10) }
    return try key.withUTF8Bytes { key in
      try item.object.withUnsafeBytes { data in
        statement.bind(borrowingText: key, at: 2)
        statement.bind(borrowing: data, at: 4)
        return try connection.runUpsert(statement)
      }
    }
  }

  /// Sets one value of an existing item.
  ///
  /// - Parameter value: nil to remove metadata.
  /// - Returns: Whether there was anything to change.
  func replace(
    _ part: ItemPart, _ value: StoredValue?, _ key: String, in collection: Int64, version: CommitNumber, time: Int64,
    author: String?
  ) throws -> Bool {
    let type = part == .object ? Int64(value?.kind.rawValue ?? 0) : nil
    try connection.statement(
      part == .object
        ? """
        UPDATE items SET type = ?3, data = ?4, version = ?5, modified = ?6, author = ?7
        WHERE collection = ?1 AND key = ?2 AND (type <> ?3 OR data <> ?4)
        """
        : """
        UPDATE items SET metadata = ?4, version = ?5, modified = ?6, author = ?7
        WHERE collection = ?1 AND key = ?2 AND metadata IS NOT ?4
        """, collection, key, type, part == .object ? value?.bytes : value?.tagged, version, time, author
    ).run()
    return connection.changeCount > 0
  }

  /// Replaces the bytes of an item by others for the same values; its version stays.
  func rewrite(_ item: HeldItem, _ key: String, in collection: Int64) throws {
    try connection.statement(
      "UPDATE items SET type = ?3, data = ?4, metadata = ?5 WHERE collection = ?1 AND key = ?2", collection, key,
      Int64(item.object.kind.rawValue), item.object, item.metadata?.tagged
    ).run()
  }

  /// - Returns: Whether there was such an item.
  func remove(_ key: String, in collection: Int64) throws -> Bool {
    try connection.statement("DELETE FROM items WHERE collection = ? AND key = ?", collection, key).run()
    return connection.changeCount > 0
  }
}

// MARK: - Columns

extension Items {
  /// The item whose type, data, metadata, expiry and due date are the first columns of a row.
  ///
  /// - Parameter isSealed: Whether its collection is sealed, so that all of its values must be, or none; others
  ///   become `StoredValue.misfit`. nil accepts both.
  package static func item(_ row: borrowing Statement.Row, isSealed: Bool?) throws -> HeldItem {
    HeldItem(
      object: try object(row, typeColumn: 0, isSealed: isSealed), metadata: try metadata(row, 2, isSealed: isSealed),
      dates: dates(row, 3))
  }

  /// The expiry in a column, and the due date in the next one.
  static func dates(_ row: borrowing Statement.Row, _ column: Int32) -> ItemDates {
    ItemDates(expires: row.optionalInteger(column), due: row.optionalInteger(column + 1))
  }

  private static func info(_ row: borrowing Statement.Row, collection: String) throws -> ItemInfo {
    let dates = dates(row, 5)
    return ItemInfo(
      collection: collection, key: row.text(0), kind: try kind(row.integer(1)), byteCount: Int(row.integer(2)),
      version: row.integer(3), modified: Date(milliseconds: row.integer(4)),
      expires: dates.expires.map(Date.init(milliseconds:)), due: dates.due.map(Date.init(milliseconds:)))
  }

  /// The object with its data in the column after its type.
  static func object(_ row: borrowing Statement.Row, typeColumn: Int32, isSealed: Bool?) throws -> HeldValue {
    let kind = try kind(row.integer(typeColumn))
    if let isSealed, isSealed != (kind == .sealed) { return .stored(.misfit) }
    return row.withBytes(typeColumn + 1) { HeldValue(kind: kind, copying: $0) }
  }

  /// Lends the bytes of a key, and of a text that is not sealed, of a row of key, type and data.
  ///
  /// - Returns: Whether it is such a text.
  static func lendText(
    _ row: borrowing Statement.Row, isSealed: Bool?, _ body: (_ key: Span<UInt8>, _ text: Span<UInt8>) throws -> Void
  ) throws -> Bool {
    guard isSealed != true, try kind(row.integer(1)) == .string else { return false }
    try row.withSpan(0) { key in try row.withSpan(2) { try body(key, $0) } }
    return true
  }

  private static func kind(_ code: Int64) throws -> Value.Kind {
    guard let kind = UInt8(exactly: code).flatMap(Value.Kind.init(ofWhole:)) else {
      throw StorageError.damaged(part: "items", reason: "unknown value kind \(code)")
    }
    return kind
  }

  static func metadata(_ row: borrowing Statement.Row, _ column: Int32, isSealed: Bool?) throws -> StoredValue? {
    guard !row.isNull(column) else { return nil }
    return try row.withBytes(column) { bytes in
      guard let tag = bytes.first, let kind = Value.Kind(ofWhole: tag) else {
        throw StorageError.damaged(part: "items", reason: "metadata has no kind")
      }
      if let isSealed, isSealed != (kind == .sealed) { return .misfit }
      let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
      return StoredValue(kind: kind, bytes: StoredBytes(copying: rest, isSecret: kind == .secret))
    }
  }
}
