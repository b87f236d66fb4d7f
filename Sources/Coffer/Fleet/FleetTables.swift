import CofferCrypto
import CofferStorage

/// The tables of fleets.
///
/// They are created with the first fleet, which raises the version of the store's tables.
struct FleetTables {
  let connection: SQLiteConnection

  var isThere: Bool { get throws { try Schema.version(connection).hasFleets } }

  /// Whether there are tables for declarations: not before the first change by this version.
  var hasDeclarations: Bool { get throws { try Schema.version(connection).hasSharedDeclarations } }

  func create() throws {
    if try !isThere { try Schema.addFleets(to: connection) }
    if try !hasDeclarations { try Schema.addSharedDeclarations(to: connection) }
  }

  /// The rules that a collection can have; 3 is that of one that waits for consent.
  private static let rules: ClosedRange<Int64> = 0...3

  static func damaged(_ reason: String) -> StorageError { .damaged(part: "fleets", reason: reason) }

  // MARK: Verifying

  /// Reads everything about all fleets, as the commands of fleets do.
  ///
  /// What the objects hold is known only to those who open them.
  func verify() throws {
    let fleets = try fleets()
    for id in fleets.compactMap(\.id) {
      _ = try records(of: id)
      _ = try conflicts(of: id)
      _ = try rules(of: id)
    }
    guard try isThere else { return }
    let strays =
      try connection.statement(
        """
        SELECT count(*) FROM (SELECT fleet FROM fleet_records UNION ALL SELECT fleet FROM fleet_conflicts
          UNION ALL SELECT fleet FROM fleet_rules) WHERE fleet NOT IN (SELECT id FROM fleets)
        """
      ).first { $0.integer(0) } ?? 0
    let all = try strays + strayDeclarations()
    guard all == 0 else { throw Self.damaged("\(all) rows are of a fleet that the store is not in") }
  }

  // MARK: Fleets

  func fleets() throws -> [StoredFleet] {
    guard try isThere else { return [] }
    return try connection.statement(
      """
      SELECT id, fleet, carrier, member, identity, first, number, sequence, synced, revision, head, authority, members, sum
      FROM fleets ORDER BY id
      """
    ).map { row in
      var fleet = StoredFleet(
        fleet: row.bytes(1), carrier: row.text(2), member: row.bytes(3),
        identity: row.withBytes(4) { SecretBytes(copying: $0) }, firstAuthority: row.bytes(5), number: row.integer(6),
        pushed: row.integer(7), synced: row.integer(8), revision: row.optionalText(9), head: row.bytes(10),
        authority: row.bytes(11), members: row.bytes(12), sum: row.bytes(13))
      fleet.id = row.integer(0)
      try fleet.check()
      return fleet
    }
  }

  /// - Returns: The number of the row.
  func save(_ fleet: StoredFleet) throws -> Int64 {
    try connection.statement(
      """
      INSERT INTO fleets(id, fleet, carrier, member, identity, first, number, sequence, synced, revision, head, authority,
        members, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
      ON CONFLICT DO UPDATE SET carrier = ?3, member = ?4, identity = ?5, number = ?7, sequence = ?8, synced = ?9, revision = ?10, head = ?11,
        authority = ?12, members = ?13, sum = ?14 RETURNING id
      """, fleet.id, fleet.fleet, fleet.carrier, fleet.member, fleet.identity, fleet.firstAuthority, fleet.number,
      fleet.pushed, fleet.synced, fleet.revision, fleet.head, fleet.authority, fleet.members, fleet.sum
    ).first { $0.integer(0) } ?? 0
  }

  private static func twinName(_ fleet: Int64) -> String { "fleet_twin_\(fleet)" }

  /// What the store knows about another host with its identity; in the table `meta`, where other versions pass it over.
  func twin(of fleet: Int64) throws -> [UInt8]? {
    try connection.statement("SELECT value FROM meta WHERE name = ?", Self.twinName(fleet)).first { $0.bytes(0) }
  }

  func setTwin(_ bytes: [UInt8], of fleet: Int64) throws {
    try connection.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)", Self.twinName(fleet), bytes).run()
  }

  private static func name(_ note: FleetNote, _ fleet: Int64) -> String { "fleet_\(note.rawValue)_\(fleet)" }

  /// A note on a fleet; in the table `meta`, too.
  func note(_ note: FleetNote, of fleet: Int64) throws -> [UInt8]? {
    try connection.statement("SELECT value FROM meta WHERE name = ?", Self.name(note, fleet)).first { $0.bytes(0) }
  }

  func set(_ note: FleetNote, to bytes: [UInt8]?, of fleet: Int64) throws {
    guard let bytes else {
      return try connection.statement("DELETE FROM meta WHERE name = ?", Self.name(note, fleet)).run()
    }
    try connection.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)", Self.name(note, fleet), bytes).run()
  }

  /// Keeps of a fleet what the store was in step with, and nothing with which it could go on.
  func leave(_ fleet: Int64) throws {
    try remove(fleet, with: ["UPDATE fleets SET identity = zeroblob(32), revision = NULL WHERE id = ?"])
  }

  /// Deletes a fleet's row, and everything about it.
  func remove(_ fleet: Int64) throws {
    for note in FleetNote.allCases { try set(note, to: nil, of: fleet) }
    try remove(fleet, with: ["DELETE FROM fleet_records WHERE fleet = ?", "DELETE FROM fleets WHERE id = ?"])
  }

  /// Deletes what only a member needs, then runs statements with the fleet as their parameter.
  private func remove(_ fleet: Int64, with statements: [StaticString]) throws {
    try connection.statement("DELETE FROM meta WHERE name = ?", Self.twinName(fleet)).run()
    let declarations: [StaticString] = [
      "DELETE FROM fleet_lost_declarations WHERE conflict IN (SELECT id FROM fleet_conflicts WHERE fleet = ?)",
      "DELETE FROM fleet_declarations WHERE fleet = ?",
    ]
    let others: [StaticString] = [
      "DELETE FROM fleet_conflicts WHERE fleet = ?", "DELETE FROM fleet_rules WHERE fleet = ?",
    ]
    for sql in (try hasDeclarations ? declarations : []) + others + statements {
      try connection.statement(sql, fleet).run()
    }
  }

  // MARK: Records

  func record(_ key: String, in collection: String, of fleet: Int64) throws -> StoredRecord? {
    try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ? AND collection = ? AND key = ?
      """, fleet, collection, key
    ).first(Self.record)
  }

  func record(named name: [UInt8], of fleet: Int64) throws -> StoredRecord? {
    try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ? AND name = ?
      """, fleet, name
    ).first(Self.record) ?? declaration(named: name, of: fleet)
  }

  func records(of fleet: Int64) throws -> [StoredRecord] {
    try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ?
      """, fleet
    ).map(Self.record) + declarations(of: fleet)
  }

  /// Above all names that begin with these bytes.
  private static func end(ofNamesBeginningWith start: [UInt8]) -> [UInt8] {
    var end = start
    while end.last == .max { end.removeLast() }
    guard let last = end.popLast() else { return [UInt8](repeating: .max, count: 64) }
    return end + [last + 1]
  }

  /// The names and digests of the records on the carrier whose names begin with these bytes.
  func digests(ofNamesBeginningWith start: [UInt8], of fleet: Int64) throws -> [(name: [UInt8], digest: [UInt8])] {
    let tables: [StaticString] = [
      "SELECT name, digest FROM fleet_records WHERE fleet = ? AND name >= ? AND name < ? AND digest <> x''",
      "SELECT name, digest FROM fleet_declarations WHERE fleet = ? AND name >= ? AND name < ? AND digest <> x''",
    ]
    let end = Self.end(ofNamesBeginningWith: start)
    return try tables.prefix(hasDeclarations ? 2 : 1).flatMap {
      try connection.statement($0, fleet, start, end).map { ($0.bytes(0), $0.bytes(1)) }
    }
  }

  /// The records of a collection's settings that were removed or have expired before a time, and are in sync.
  func forgettableRecords(
    of fleet: Int64, in collection: String, before time: Int64, atMost count: Int
  ) throws -> [StoredRecord] {
    let records = try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ?1 AND collection = ?4 AND version >= 0 AND digest <> x''
      AND (removed AND clock < ?2 << 16 AND version = 0 OR expires < ?2) LIMIT ?3
      """, fleet, time, Int64(count), collection
    ).map(Self.record)
    return try records
      + forgettableDeclarations(of: fleet, in: collection, before: time, atMost: count - records.count)
  }

  private static func record(_ row: borrowing Statement.Row) throws -> StoredRecord {
    let record = StoredRecord(
      collection: row.text(0), key: row.text(1), name: row.bytes(2), counter: row.integer(3), clock: row.integer(4),
      author: row.bytes(5), isRemoved: row.integer(6) != 0, expires: row.optionalInteger(7), version: row.integer(8),
      digest: row.bytes(9))
    guard (0...1).contains(row.integer(6)), record.isPlausible else {
      throw FleetTables.damaged("the record of \(KeyText.of(record.key, in: record.collection)) is not one")
    }
    return record
  }

  func save(_ record: StoredRecord, of fleet: Int64) throws {
    if let declaration = record.declaration { return try save(record, declaration, of: fleet) }
    try connection.statement(
      "INSERT OR REPLACE INTO fleet_records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)", fleet,
      record.collection, record.key, record.name, record.counter, record.clock, record.author, record.isRemoved,
      record.expires, record.version, record.digest
    ).run()
  }

  func remove(_ record: StoredRecord, of fleet: Int64) throws {
    try connection.statement(
      record.declaration == nil
        ? "DELETE FROM fleet_records WHERE fleet = ? AND collection = ? AND key = ?"
        : "DELETE FROM fleet_declarations WHERE fleet = ? AND collection = ? AND key = ?", fleet, record.collection,
      record.key
    ).run()
  }

  /// The collections with records.
  func collections(of fleet: Int64) throws -> [String] {
    let collections = try connection.statement("SELECT DISTINCT collection FROM fleet_records WHERE fleet = ?", fleet)
      .map { $0.text(0) }
    return try Set((collections + declarations(of: fleet).map(\.collection)).map(ByteString.init)).map(\.string)
  }

  func removeRecords(in collection: String, of fleet: Int64) throws {
    try connection.statement("DELETE FROM fleet_records WHERE fleet = ? AND collection = ?", fleet, collection).run()
    try removeDeclarations(in: collection, of: fleet)
  }

  // MARK: Changes

  /// The keys of a collection that are not in sync.
  ///
  /// - Parameter collection: nil if there is none.
  func keysNotInStep(
    _ collection: StoredCollection?, named name: String, of fleet: Int64, at time: Int64
  ) throws -> [String] {
    try connection.statement(
      """
      SELECT key FROM items WHERE collection = ?1 AND (expires IS NULL OR expires > ?4) AND NOT EXISTS (
        SELECT 1 FROM fleet_records AS r
        WHERE r.fleet = ?2 AND r.collection = ?3 AND r.key = items.key AND r.version = items.version)
      UNION ALL SELECT key FROM fleet_records AS r WHERE fleet = ?2 AND collection = ?3 AND version <> 0
      AND (expires IS NULL OR expires > ?4) AND NOT EXISTS (
        SELECT 1 FROM items WHERE items.collection = ?1 AND items.key = r.key
          AND (items.expires IS NULL OR items.expires > ?4))
      """, collection?.id, fleet, name, time
    ).map { $0.text(0) }
  }

  // MARK: Conflicts and rules

  func conflicts(of fleet: Int64) throws -> [StoredConflict] {
    let lost = try lostDeclarations()
    return try connection.statement(
      "SELECT id, collection, key, version, time, winner, loser FROM fleet_conflicts WHERE fleet = ? ORDER BY id", fleet
    ).map {
      StoredConflict(
        id: $0.integer(0), collection: $0.text(1), key: $0.text(2), version: $0.integer(3), time: $0.integer(4),
        winner: $0.text(5), loser: $0.text(6), declaration: lost[$0.integer(0)])
    }
  }

  /// - Returns: Its number.
  func addConflict(
    _ key: String, in collection: String, version: CommitNumber, time: Int64, winner: String, loser: String,
    of fleet: Int64
  ) throws -> Int64 {
    try connection.statement(
      """
      INSERT INTO fleet_conflicts(fleet, collection, key, version, time, winner, loser)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id
      """, fleet, collection, key, version, time, winner, loser
    ).first { $0.integer(0) } ?? 0
  }

  func removeConflict(_ id: Int64, of fleet: Int64) throws {
    try removeLostDeclaration(of: id)
    try connection.statement("DELETE FROM fleet_conflicts WHERE id = ? AND fleet = ?", id, fleet).run()
  }

  func rules(of fleet: Int64) throws -> [String: Int64] {
    var rules: [String: Int64] = [:]
    try connection.statement("SELECT collection, rule FROM fleet_rules WHERE fleet = ?", fleet).query { row in
      guard Self.rules.contains(row.integer(1)) else {
        throw Self.damaged("collection \"\(row.text(0))\" has rule \(row.integer(1))")
      }
      rules[row.text(0)] = row.integer(1)
    }
    return rules
  }

  func removeRule(for collection: String, of fleet: Int64) throws {
    try connection.statement("DELETE FROM fleet_rules WHERE fleet = ? AND collection = ?", fleet, collection).run()
  }

  func setRule(_ rule: Int64, for collection: String, of fleet: Int64) throws {
    try connection.statement("INSERT OR REPLACE INTO fleet_rules VALUES (?, ?, ?)", fleet, collection, rule).run()
  }
}

/// What a store notes on a fleet besides its row.
package enum FleetNote: String, CaseIterable {
  /// What it has passed over because it could not take it.
  case passed
  /// The collections that it had, and has no longer.
  case lost
}
