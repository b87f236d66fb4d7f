import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Session {
  // MARK: One item

  /// Both values of an item, from the cache where it has them.
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
    try reading {
      try row(key, in: collection, "SELECT 1 FROM items WHERE collection = ? AND key = ?") { _, _ in true }
        ?? false
    }
  }

  /// Both values of an item as they are in the tables.
  func storedItem(_ key: String, in collection: String) throws -> HeldItem? {
    try row(key, in: collection, "SELECT type, data, metadata FROM items WHERE collection = ? AND key = ?") {
      try Self.item($0, isSealed: $1)
    }
  }

  /// A row with everything about an item.
  package struct FullRow {
    package let item: HeldItem
    package let version: Int64
    package let modified: Int64
  }

  package func fullRow(_ key: String, in collection: String) throws -> FullRow? {
    try reading {
      try row(
        key, in: collection,
        "SELECT type, data, metadata, version, modified FROM items WHERE collection = ? AND key = ?"
      ) { row, isSealed in
        FullRow(
          item: try Self.item(row, isSealed: isSealed),
          version: row.integer(3), modified: row.integer(4))
      }
    }
  }

  package func info(_ key: String, in collection: String) throws -> ItemInfo? {
    try reading {
      try row(
        key, in: collection,
        "SELECT type, length(data), version, modified FROM items WHERE collection = ? AND key = ?"
      ) { row, _ in
        ItemInfo(
          collection: collection, key: key, kind: try Self.kind(row.integer(0)), byteCount: Int(row.integer(1)),
          version: row.integer(2), modified: Date(milliseconds: row.integer(3)))
      }
    }
  }

  /// The version of an item; 0 when there is none.
  package func version(_ key: String, in collection: String) throws -> Int64 {
    try reading {
      try row(key, in: collection, "SELECT version FROM items WHERE collection = ? AND key = ?") { row, _ in
        row.integer(0)
      } ?? 0
    }
  }

  private func row<Result>(
    _ key: String, in collection: String, _ sql: StaticString,
    _ body: (borrowing Statement.Row, _ isSealed: Bool) throws -> Result
  ) throws -> Result? {
    guard let stored = try storedCollection(collection) else { return nil }
    let statement = try connection.statement(sql)
    statement.bind(stored.id, at: 1)
    statement.bind(key, at: 2)
    return try statement.first { try body($0, stored.isSealed) }
  }

  /// The item whose type, data and metadata are the first columns of a row.
  ///
  /// - Parameter isSealed: Whether all that is in its collection is sealed, and nothing in another one; what is otherwise
  ///   becomes `StoredValue.misfit`. nil takes both.
  package static func item(_ row: borrowing Statement.Row, isSealed: Bool?) throws -> HeldItem {
    HeldItem(
      object: try object(row, typeColumn: 0, isSealed: isSealed), metadata: try metadata(row, 2, isSealed: isSealed))
  }

  /// The object whose data are in the column after that of its type.
  static func object(_ row: borrowing Statement.Row, typeColumn: Int32, isSealed: Bool?) throws -> HeldValue {
    let kind = try kind(row.integer(typeColumn))
    if let isSealed, isSealed != (kind == .sealed) { return .stored(.misfit) }
    return row.withBytes(typeColumn + 1) { HeldValue(kind: kind, copying: $0) }
  }

  private static func kind(_ code: Int64) throws -> Value.Kind {
    guard let kind = UInt8(exactly: code).flatMap(Value.Kind.init) else {
      throw StorageError.damaged(part: "items", reason: "there is no value of kind \(code)")
    }
    return kind
  }

  static func metadata(_ row: borrowing Statement.Row, _ column: Int32, isSealed: Bool?) throws -> StoredValue? {
    guard !row.isNull(column) else { return nil }
    return try row.withBytes(column) { bytes in
      guard let tag = bytes.first, let kind = Value.Kind(rawValue: tag) else {
        throw StorageError.damaged(part: "items", reason: "metadata has no kind")
      }
      if let isSealed, isSealed != (kind == .sealed) { return .misfit }
      let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
      return StoredValue(kind: kind, bytes: StoredBytes(copying: rest, isSecret: kind == .secret))
    }
  }

  // MARK: Counts and lists

  package func collectionNames() throws -> [String] {
    try reading {
      var names: [String] = []
      try connection.statement(
        """
        SELECT name FROM collections WHERE EXISTS (SELECT 1 FROM items WHERE collection = collections.id) ORDER BY name
        """
      ).query { names.append($0.text(0)) }
      return names
    }
  }

  /// - Parameter collection: nil stands for all.
  package func count(in collection: String?) throws -> Int {
    try reading {
      guard let collection else {
        return Int(try connection.statement("SELECT count(*) FROM items").first { $0.integer(0) } ?? 0)
      }
      guard let id = try collectionID(collection) else { return 0 }
      let statement = try connection.statement("SELECT count(*) FROM items WHERE collection = ?")
      statement.bind(id, at: 1)
      return Int(try statement.first { $0.integer(0) } ?? 0)
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

  package func infos(in collection: String) throws -> [ItemInfo] {
    try reading {
      guard let id = try collectionID(collection) else { return [] }
      var infos: [ItemInfo] = []
      let statement = try connection.statement(
        "SELECT key, type, length(data), version, modified FROM items WHERE collection = ? ORDER BY key")
      statement.bind(id, at: 1)
      try statement.query { row in
        infos.append(
          ItemInfo(
            collection: collection, key: row.text(0), kind: try Self.kind(row.integer(1)),
            byteCount: Int(row.integer(2)), version: row.integer(3), modified: Date(milliseconds: row.integer(4))))
      }
      return infos
    }
  }

  // MARK: Enumerations

  private func cursor(_ collection: String, _ range: KeyRange, _ columns: Cursor.Columns) throws -> Cursor? {
    try storedCollection(collection).map { stored in
      Cursor(
        connection: connection, collection: stored.id, isSealed: stored.isSealed, range: range, columns: columns)
    }
  }

  /// Hands the items of a collection to `body` in the order of their keys, as they are now, whatever `body` changes;
  /// stops when it returns false.
  ///
  /// - Parameter collection: nil stands for all, in the order of their names.
  package func enumerate(
    _ collection: String?, _ range: KeyRange, _ columns: Cursor.Columns,
    _ body: (String, Cursor) throws -> Bool
  ) throws {
    // All cursors stand from the start: what is inserted into a later collection meanwhile is not seen.
    let isAlone = isAutocommitting
    let pairs = try reading {
      let pairs = try (collection.map { [$0] } ?? collectionNames()).compactMap { name in
        try cursor(name, range, columns).map { (name, $0) }
      }
      // Without a transaction around it, the snapshot ends with this read.
      if isAlone { for (_, cursor) in pairs { try cursor.loadRest() } }
      return pairs
    }
    let earlierCount = cursors.count
    cursors += pairs.map(\.1)
    defer { cursors.removeLast(cursors.count - earlierCount) }
    // Also what `body` asks the cursor for.
    try CofferError.translating {
      for (name, cursor) in pairs {
        while try reading({ try cursor.advance() }) {
          guard try body(name, cursor) else { return }
        }
      }
    }
  }
}
