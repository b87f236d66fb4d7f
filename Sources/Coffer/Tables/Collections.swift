import CofferStorage

/// A row of the table `collections`.
package struct StoredCollection {
  /// The bits of its column `flags`.
  package enum Flags {
    /// Its values are sealed under the vault's key.
    package static let isSealed: Int64 = 1
    /// Earlier values of its items are kept.
    package static let keepsHistory: Int64 = 2
    /// It is an environment that was removed; its row stays for the history of its items.
    package static let isRemoved: Int64 = 4
    static let known = isSealed | keepsHistory | isRemoved
  }

  /// Above 0.
  let id: Int64
  var isSealed = false
  /// Whether it is an environment that was removed.
  var isRemoved = false
  /// nil without history.
  var history: HistoryLimits?

  /// Refuses a collection whose contents a newer version may have changed in form.
  package static func check(flags: Int64, of name: String) throws {
    guard flags & ~Flags.known == 0 else {
      throw StorageError.newerFormat(
        part: "collection \"\(name)\"", found: Int(flags), supported: Int(Flags.known))
    }
  }

  /// The ID in a row, if valid.
  static func checkedID(_ id: Int64) throws -> Int64 {
    guard id > 0 else { throw StorageError.damaged(part: "collections", reason: "a collection has the ID \(id)") }
    return id
  }
}

/// The table `collections`: names and their properties.
package struct Collections {
  let connection: SQLiteConnection

  package init(connection: SQLiteConnection) { self.connection = connection }

  // MARK: Reading

  func collection(named name: String) throws -> StoredCollection? {
    try connection.statement("SELECT id, flags, history_count, history_age FROM collections WHERE name = ?", name).first
    { row in
      try StoredCollection.check(flags: row.integer(1), of: name)
      return StoredCollection(
        id: try StoredCollection.checkedID(row.integer(0)),
        isSealed: row.integer(1) & StoredCollection.Flags.isSealed != 0,
        isRemoved: row.integer(1) & StoredCollection.Flags.isRemoved != 0,
        history: row.integer(1) & StoredCollection.Flags.keepsHistory == 0
          ? nil : try HistoryLimits(storedCount: row.integer(2), age: row.isNull(3) ? nil : row.integer(3)))
    }
  }

  /// All of them, in the order of their names.
  func all() throws -> [(name: String, StoredCollection)] {
    var all: [(name: String, StoredCollection)] = []
    try connection.statement("SELECT id, name, flags FROM collections ORDER BY name").query {
      let (name, flags) = ($0.text(1), $0.integer(2))
      try StoredCollection.check(flags: flags, of: name)
      let id = try StoredCollection.checkedID($0.integer(0))
      all.append(
        (
          name,
          StoredCollection(
            id: id, isSealed: flags & StoredCollection.Flags.isSealed != 0,
            isRemoved: flags & StoredCollection.Flags.isRemoved != 0)
        ))
    }
    return all
  }

  /// The names of all but removed environments, in order, including unreadable collections.
  func presentNames() throws -> [String] {
    try connection.statement("SELECT name FROM collections WHERE flags & 4 = 0 ORDER BY name").map { $0.text(0) }
  }

  /// The names by ID, including unreadable collections.
  func names() throws -> [Int64: String] {
    var names: [Int64: String] = [:]
    try connection.statement("SELECT id, name FROM collections").query { names[$0.integer(0)] = $0.text(1) }
    return names
  }

  /// The names of non-empty ones, in order.
  func namesInUse(at time: Int64) throws -> [String] {
    try connection.statement(
      """
      SELECT name FROM collections WHERE EXISTS (
        SELECT 1 FROM items WHERE collection = collections.id AND (expires IS NULL OR expires > ?)) ORDER BY name
      """, time
    ).map { $0.text(0) }
  }

  /// The names of the sealed ones, in order, with removed environments, whose history is sealed.
  func sealedNames() throws -> [String] {
    try connection.statement("SELECT name FROM collections WHERE flags & 1 ORDER BY name").map { $0.text(0) }
  }

  /// Throws if the ID of the next collection would be that of an earlier one, or none is left.
  package func checkNextID() throws {
    let (highest, last, count) =
      try connection.statement(
        """
        SELECT (SELECT coalesce(max(id), 0) FROM collections), coalesce(max(seq), 0), count(*) FROM sqlite_sequence
        WHERE name = 'collections'
        """
      ).first { ($0.integer(0), $0.integer(1), $0.integer(2)) } ?? (0, 0, 0)
    guard count <= 1, last >= max(highest, 0), last < .max else {
      throw StorageError.damaged(part: "collections", reason: "the last ID of a collection is said to be \(last)")
    }
  }

  // MARK: Writing

  func insert(_ name: String) throws -> StoredCollection {
    try checkNextID()
    let statement = try connection.statement("INSERT INTO collections(name) VALUES (?) RETURNING id", name)
    guard let id = try statement.first({ try StoredCollection.checkedID($0.integer(0)) }) else {
      throw StorageError.damaged(part: "collections", reason: "a new collection got no ID")
    }
    return StoredCollection(id: id)
  }

  func setSealed(_ isSealed: Bool, _ id: Int64) throws {
    try set(StoredCollection.Flags.isSealed, to: isSealed, id)
  }

  func setRemoved(_ isRemoved: Bool, _ id: Int64) throws {
    try set(StoredCollection.Flags.isRemoved, to: isRemoved, id)
  }

  private func set(_ flag: Int64, to isSet: Bool, _ id: Int64) throws {
    try connection.statement(
      "UPDATE collections SET flags = iif(?2, flags | ?3, flags & ~?3) WHERE id = ?1", id, isSet, flag
    ).run()
  }

  /// - Parameter limits: nil to keep no history.
  func setHistoryLimits(_ limits: HistoryLimits?, _ id: Int64) throws {
    try connection.statement(
      """
      UPDATE collections SET flags = iif(?2 IS NULL, flags & ~2, flags | 2), history_count = ?2, history_age = ?3
      WHERE id = ?1
      """, id, limits.map { Int64($0.maximumCount) }, limits?.age
    ).run()
  }

  /// Erases a collection: its items, their history, and its row; a sealed one and an environment stay, empty.
  func erase(_ id: Int64, isEnvironment: Bool) throws {
    try run("DELETE FROM items WHERE collection = ?", id)
    try run("DELETE FROM history WHERE collection = ?", id)
    if !isEnvironment { try run("DELETE FROM collections WHERE id = ? AND flags & ~2 = 0", id) }
    try run(
      "UPDATE collections SET flags = flags & ~2, history_count = NULL, history_age = NULL WHERE id = ?", id)
  }

  /// The same of all collections.
  func eraseAll() throws {
    // Few have such a name, and only this code knows what an environment is.
    let others = try all().filter {
      $0.name.utf8.contains(UInt8(ascii: "@")) && CollectionEnvironment(collection: $0.name) == nil
    }
    try run("DELETE FROM items")
    try run("DELETE FROM history")
    try run("DELETE FROM collections WHERE flags & ~2 = 0 AND instr(name, '@') = 0")
    for (_, collection) in others { try run("DELETE FROM collections WHERE id = ? AND flags & ~2 = 0", collection.id) }
    try run("UPDATE collections SET flags = flags & ~2, history_count = NULL, history_age = NULL")
  }

  /// Removes the row of an empty collection.
  func remove(_ id: Int64) throws {
    try run("DELETE FROM collections WHERE id = ?", id)
  }

  private func run(_ sql: StaticString, _ id: Int64? = nil) throws {
    try connection.statement(sql, id).run()
  }
}
