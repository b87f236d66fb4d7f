import CofferStorage

/// The declarations that fleets share.
///
/// Their tables came later than those of fleets: every function finds nothing without them.
extension FleetTables {
  // MARK: Records

  func declaration(_ key: String, in collection: String, of fleet: Int64) throws -> StoredRecord? {
    guard try hasDeclarations else { return nil }
    return try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, version, digest, shared, application, application_version,
        declaration, own FROM fleet_declarations WHERE fleet = ? AND collection = ? AND key = ?
      """, fleet, collection, key
    ).first(Self.declaration)
  }

  func declaration(named name: [UInt8], of fleet: Int64) throws -> StoredRecord? {
    guard try hasDeclarations else { return nil }
    return try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, version, digest, shared, application, application_version,
        declaration, own FROM fleet_declarations WHERE fleet = ? AND name = ?
      """, fleet, name
    ).first(Self.declaration)
  }

  func declarations(of fleet: Int64) throws -> [StoredRecord] {
    guard try hasDeclarations else { return [] }
    return try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, version, digest, shared, application, application_version,
        declaration, own FROM fleet_declarations WHERE fleet = ? ORDER BY collection, key
      """, fleet
    ).map(Self.declaration)
  }

  /// The records of declarations in a collection that were removed before a time, and are in sync.
  func forgettableDeclarations(
    of fleet: Int64, in collection: String, before time: Int64, atMost count: Int
  ) throws -> [StoredRecord] {
    guard try hasDeclarations else { return [] }
    return try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, version, digest, shared, application, application_version,
        declaration, own FROM fleet_declarations
      WHERE fleet = ?1 AND collection = ?4 AND version >= 0 AND digest <> x'' AND declaration IS NULL AND clock < ?2 << 16 LIMIT ?3
      """, fleet, time, Int64(count), collection
    ).map(Self.declaration)
  }

  private static func declaration(_ row: borrowing Statement.Row) throws -> StoredRecord {
    let content = row.optionalText(11).map {
      SharedDeclaration(application: row.text(9), version: row.optionalText(10), json: $0)
    }
    let record = StoredRecord(
      collection: row.text(0), key: row.text(1), name: row.bytes(2), counter: row.integer(3), clock: row.integer(4),
      author: row.bytes(5), isRemoved: content == nil, expires: nil, version: row.integer(6), digest: row.bytes(7),
      declaration: StoredDeclaration(content: content, own: row.optionalText(12), isShared: row.integer(8) != 0))
    guard record.isPlausible, (0...1).contains(row.integer(8)), content == nil || !row.isNull(9) else {
      throw damaged("the record of the declaration of \(KeyText.of(record.key, in: record.collection)) is not one")
    }
    return record
  }

  func save(_ record: StoredRecord, _ declaration: StoredDeclaration, of fleet: Int64) throws {
    let content = declaration.content
    try connection.statement(
      """
      INSERT OR REPLACE INTO fleet_declarations
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
      """, record.collection, record.key, fleet, record.name, record.counter, record.clock, record.author,
      record.version, record.digest, declaration.isShared, content?.application, content?.version, content?.json,
      declaration.own
    ).run()
  }

  func removeDeclarations(in collection: String, of fleet: Int64) throws {
    guard try hasDeclarations else { return }
    try connection.statement("DELETE FROM fleet_declarations WHERE fleet = ? AND collection = ?", fleet, collection)
      .run()
  }

  /// The number of rows of a fleet that the store is not in, or of a conflict that there is not.
  func strayDeclarations() throws -> Int64 {
    guard try hasDeclarations else { return 0 }
    return try connection.statement(
      """
      SELECT (SELECT count(*) FROM fleet_declarations WHERE fleet NOT IN (SELECT id FROM fleets))
        + (SELECT count(*) FROM fleet_lost_declarations WHERE conflict NOT IN (SELECT id FROM fleet_conflicts))
      """
    ).first { $0.integer(0) } ?? 0
  }

  /// Whether any has to be pushed although nothing was declared here.
  func areDeclarationsNotInStep(of fleet: Int64) throws -> Bool {
    guard try hasDeclarations else { return false }
    return try connection.statement(
      "SELECT 1 FROM fleet_declarations WHERE fleet = ? AND version < 0 AND shared LIMIT 1", fleet
    ).hasRow()
  }

  // MARK: Conflicts

  func lostDeclarations() throws -> [Int64: SharedDeclaration] {
    guard try hasDeclarations else { return [:] }
    var lost: [Int64: SharedDeclaration] = [:]
    try connection.statement(
      "SELECT conflict, application, application_version, declaration FROM fleet_lost_declarations"
    ).query {
      lost[$0.integer(0)] = SharedDeclaration(
        application: $0.text(1), version: $0.optionalText(2), json: $0.text(3))
    }
    return lost
  }

  func saveLost(_ declaration: SharedDeclaration, of conflict: Int64) throws {
    try connection.statement(
      "INSERT INTO fleet_lost_declarations VALUES (?, ?, ?, ?)", conflict, declaration.application, declaration.version,
      declaration.json
    ).run()
  }

  func removeLostDeclaration(of conflict: Int64) throws {
    guard try hasDeclarations else { return }
    try connection.statement("DELETE FROM fleet_lost_declarations WHERE conflict = ?", conflict).run()
  }
}
