import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The tables of one connection, as the transactions see them.
///
/// Used by one thread at a time.
final class Session {
  let connection: SQLiteConnection
  private let writer: Int64
  private let changeLog: ChangeLog

  // The transaction that is under way.
  private var changes = ChangeSet()
  private var time: Int64 = 0
  /// Ids of collections looked up in this transaction; another process may remove a collection between two.
  private var collectionIDs: [ByteString: Int64] = [:]
  var isRolledBack = false
  /// Whether the last write transaction had an effect, and so a commit.
  private(set) var hasCommitted = false

  init(connection: SQLiteConnection, writer: Int64) {
    self.connection = connection
    self.writer = writer
    changeLog = ChangeLog(connection: connection)
  }

  func snapshot() throws -> UInt64 {
    try UInt64(changeLog.lastSequence())
  }

  // MARK: Transactions

  func read<Result>(_ body: () throws -> Result) throws -> Result {
    collectionIDs = [:]
    try CofferError.translating { try connection.beginRead() }
    do {
      let result = try body()
      try CofferError.translating {
        try requireTransaction()
        try connection.commit()
      }
      return result
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  func write<Result>(
    _ synchronization: SQLiteConnection.Synchronization, _ body: () throws -> Result
  ) throws -> Result {
    changes = ChangeSet()
    collectionIDs = [:]
    isRolledBack = false
    hasCommitted = false
    time = Clock.millisecondsSince1970
    try CofferError.translating { try connection.beginWrite(synchronization) }
    do {
      let result = try body()
      try CofferError.translating {
        if !isRolledBack { try requireTransaction() }
        guard !isRolledBack, !changes.isEmpty else { return try connection.rollback() }
        try changeLog.append(changes, time: time, writer: writer)
        try connection.commit()
        hasCommitted = true
      }
      return result
    } catch {
      // The first error counts; SQLite may have rolled back by itself.
      try? connection.rollback()
      throw error
    }
  }

  /// SQLite ends a transaction by itself on some errors; what followed would read other snapshots, and commit one by one.
  private func requireTransaction() throws {
    guard connection.isInTransaction else {
      throw StorageError.sqlite(code: 4, message: "the transaction was rolled back after an earlier error")
    }
  }

  // MARK: Collections

  private func collectionID(_ name: String) throws -> Int64? {
    let key = ByteString(name)
    if let id = collectionIDs[key] { return id }
    let statement = try connection.statement("SELECT id FROM collections WHERE name = ?")
    statement.bind(name, at: 1)
    let id = try statement.first { $0.integer(0) }
    if let id { collectionIDs[key] = id }
    return id
  }

  private func makeCollection(_ name: String) throws -> Int64 {
    if let id = try collectionID(name) { return id }
    let statement = try connection.statement("INSERT INTO collections(name) VALUES (?) RETURNING id")
    statement.bind(name, at: 1)
    guard let id = try statement.first({ $0.integer(0) }) else {
      throw StorageError.damaged(part: "collections", reason: "a new collection got no id")
    }
    collectionIDs[ByteString(name)] = id
    return id
  }

  func collectionNames() throws -> [String] {
    try CofferError.translating {
      var names: [String] = []
      try connection.statement(
        """
        SELECT name FROM collections WHERE EXISTS (SELECT 1 FROM items WHERE collection = collections.id) ORDER BY name
        """
      ).query { names.append($0.text(0)) }
      return names
    }
  }

  // MARK: Reading items

  func stored(_ key: String, in collection: String) throws -> StoredValue? {
    try row(key, in: collection, "SELECT type, data FROM items WHERE collection = ? AND key = ?") { row in
      try storedValue(row, typeColumn: 0, dataColumn: 1)
    }
  }

  func metadata(_ key: String, in collection: String) throws -> StoredValue? {
    try row(key, in: collection, "SELECT metadata FROM items WHERE collection = ? AND key = ?") { row in
      try metadata(row, column: 0)
    } ?? nil
  }

  func has(_ key: String, in collection: String) throws -> Bool {
    try row(key, in: collection, "SELECT 1 FROM items WHERE collection = ? AND key = ?") { _ in true } ?? false
  }

  /// A row with everything about an item.
  struct FullRow {
    let stored: StoredValue
    let metadata: StoredValue?
    let version: Int64
    let modified: Int64
  }

  func fullRow(_ key: String, in collection: String) throws -> FullRow? {
    try row(
      key, in: collection,
      "SELECT type, data, metadata, version, modified FROM items WHERE collection = ? AND key = ?"
    ) { row in
      FullRow(
        stored: try storedValue(row, typeColumn: 0, dataColumn: 1), metadata: try metadata(row, column: 2),
        version: row.integer(3), modified: row.integer(4))
    }
  }

  private func row<Result>(
    _ key: String, in collection: String, _ sql: StaticString,
    _ body: (borrowing Statement.Row) throws -> Result
  ) throws -> Result? {
    try CofferError.translating {
      try requireTransaction()
      guard let id = try collectionID(collection) else { return nil }
      let statement = try connection.statement(sql)
      statement.bind(id, at: 1)
      statement.bind(key, at: 2)
      return try statement.first(body)
    }
  }

  private func storedValue(
    _ row: borrowing Statement.Row, typeColumn: Int32, dataColumn: Int32
  ) throws -> StoredValue {
    StoredValue(kind: try Self.kind(row.integer(typeColumn)), bytes: row.bytes(dataColumn))
  }

  private static func kind(_ code: Int64) throws -> Value.Kind {
    guard let kind = UInt8(exactly: code).flatMap(Value.Kind.init) else {
      throw StorageError.damaged(part: "items", reason: "there is no value of kind \(code)")
    }
    return kind
  }

  private func metadata(_ row: borrowing Statement.Row, column: Int32) throws -> StoredValue? {
    guard !row.isNull(column) else { return nil }
    let bytes = row.bytes(column)
    guard let tag = bytes.first, let kind = Value.Kind(rawValue: tag) else {
      throw StorageError.damaged(part: "items", reason: "metadata has no kind")
    }
    return StoredValue(kind: kind, bytes: Array(bytes.dropFirst()))
  }

  // MARK: Listing items

  func count(in collection: String?) throws -> Int {
    try CofferError.translating {
      guard let collection else {
        return Int(try connection.statement("SELECT count(*) FROM items").first { $0.integer(0) } ?? 0)
      }
      guard let id = try collectionID(collection) else { return 0 }
      let statement = try connection.statement("SELECT count(*) FROM items WHERE collection = ?")
      statement.bind(id, at: 1)
      return Int(try statement.first { $0.integer(0) } ?? 0)
    }
  }

  func keys(in collection: String) throws -> [String] {
    var keys: [String] = []
    try list(collection, "SELECT key FROM items WHERE collection = ? ORDER BY key") { keys.append($0.text(0)) }
    return keys
  }

  func infos(in collection: String) throws -> [ItemInfo] {
    var infos: [ItemInfo] = []
    try list(
      collection,
      "SELECT key, type, length(data), version, modified FROM items WHERE collection = ? ORDER BY key"
    ) { row in
      infos.append(
        ItemInfo(
          collection: collection, key: row.text(0), kind: try Self.kind(row.integer(1)),
          byteCount: Int(row.integer(2)), version: row.integer(3), modified: Date(milliseconds: row.integer(4))))
    }
    return infos
  }

  private func list(
    _ collection: String, _ sql: StaticString, _ body: (borrowing Statement.Row) throws -> Void
  ) throws {
    try CofferError.translating {
      try requireTransaction()
      guard let id = try collectionID(collection) else { return }
      let statement = try connection.statement(sql)
      statement.bind(id, at: 1)
      try statement.query(body)
    }
  }

  // MARK: Writing items

  func set(_ stored: StoredValue, metadata: StoredValue?, _ key: String, in collection: String) throws {
    try CofferError.translating {
      try requireTransaction()
      let id = try makeCollection(collection)
      // An equal value changes nothing: no version, no change, no page.
      let statement = try connection.statement(
        """
        INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6) ON CONFLICT DO UPDATE
        SET type = ?3, data = ?4, metadata = ?5, version = successor(version), modified = ?6
        WHERE type <> ?3 OR data <> ?4 OR metadata IS NOT ?5
        """)
      statement.bind(id, at: 1)
      statement.bind(key, at: 2)
      statement.bind(Int64(stored.kind.rawValue), at: 3)
      statement.bind(stored.bytes, at: 4)
      statement.bind(metadata.map { [$0.kind.rawValue] + $0.bytes }, at: 5)
      statement.bind(time, at: 6)
      let kind: ChangeSet.Kind
      switch try connection.runUpsert(statement) {
      case .inserted: kind = .inserted
      case .updated: kind = .updated
      case .unchanged: return
      }
      changes.record(key, in: id, ChangeSet.Change(kind: kind, changesObject: true, changesMetadata: true))
    }
  }

  func remove(_ key: String, in collection: String) throws -> Bool {
    try CofferError.translating {
      try requireTransaction()
      guard let id = try collectionID(collection) else { return false }
      let statement = try connection.statement("DELETE FROM items WHERE collection = ? AND key = ?")
      statement.bind(id, at: 1)
      statement.bind(key, at: 2)
      try statement.run()
      guard connection.changeCount > 0 else { return false }
      changes.record(key, in: id, ChangeSet.Change(kind: .removed, changesObject: true, changesMetadata: true))
      return true
    }
  }

  /// Removes a collection's items, and with them every trace of its keys and its name.
  func removeAll(in collection: String) throws {
    try CofferError.translating {
      try requireTransaction()
      guard let id = try collectionID(collection) else { return }
      for sql: StaticString in [
        "DELETE FROM items WHERE collection = ?", "DELETE FROM history WHERE collection = ?",
        // One that was declared to be of a certain kind stays declared.
        "DELETE FROM collections WHERE id = ? AND flags = 0",
      ] {
        let statement = try connection.statement(sql)
        statement.bind(id, at: 1)
        try statement.run()
      }
      collectionIDs[ByteString(collection)] = nil
      try changeLog.forget(id)
      changes.recordClearing(of: id)
    }
  }
}

extension Date {
  init(milliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
  }
}
