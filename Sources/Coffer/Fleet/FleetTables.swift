import CofferCrypto
import CofferStorage

/// What a store knows about a fleet that it belongs to: a row of the table `fleets`.
package struct StoredFleet: Sendable {
  /// The number of the row; nil before it is inserted.
  package var id: Int64?
  /// The ID of the fleet.
  package var fleet: [UInt8]
  /// The carrier's address.
  package var carrier: String
  /// This store's member ID, and the seed of its private keys; behind that of the invitation until an admin has seen that the store
  /// has joined.
  package var member: [UInt8]
  package var identity: SecretBytes
  /// SHA-256 of the first version of the members, from which all others are verified.
  package var firstAuthority: [UInt8]
  /// The commit that the store is in sync with; the highest that it has seen.
  package var number: Int64
  /// The commit of the store up to which its changes were searched.
  package var pushed: CommitNumber
  /// When it was last in sync, in milliseconds since 1970.
  package var synced: Int64
  /// Where the carrier's changes continue; nil if everything must be read.
  package var revision: String?
  /// The verified objects of the head and the members.
  package var head: [UInt8]
  package var authority: [UInt8]
  package var members: [UInt8]
  /// The digests of the parts of the set of all records.
  package var sum: [UInt8]

  package init(
    fleet: [UInt8], carrier: String, member: [UInt8], identity: SecretBytes, firstAuthority: [UInt8], number: Int64 = 0,
    pushed: CommitNumber = 0, synced: Int64 = 0, revision: String? = nil, head: [UInt8] = [], authority: [UInt8],
    members: [UInt8], sum: [UInt8]
  ) {
    (self.fleet, self.carrier, self.member, self.identity) = (fleet, carrier, member, identity)
    (self.firstAuthority, self.number, self.pushed, self.synced) = (firstAuthority, number, pushed, synced)
    (self.revision, self.head, self.authority, self.members) = (revision, head, authority, members)
    self.sum = sum
  }
}

extension StoredFleet {
  /// The size of `sum`: a digest for each value of a name's first byte.
  package static let sumByteCount = 256 * 32

  /// The size of `sum` before it was that of a set.
  ///
  /// A store with such a one opens; its fleet has to be joined again.
  private static let earlierSumByteCount = 2048

  /// Whether the store has left the fleet, and keeps only what it was in step with, for when it joins again.
  package var hasLeft: Bool { identity.withUnsafeBytes { $0.allSatisfy { $0 == 0 } } }

  /// Throws if a part has a form that no fleet has; nothing of it is authenticated here.
  fileprivate func check() throws {
    for (bytes, count, name) in [(fleet, 16, "ID"), (member, 16, "member")]
    where bytes.count != count {
      throw FleetTables.damaged("the \(name) of a fleet has \(bytes.count) bytes")
    }
    guard [Self.sumByteCount, Self.earlierSumByteCount].contains(sum.count) else {
      throw FleetTables.damaged("the sum of a fleet has \(sum.count) bytes")
    }
    // Two before an admin has seen that the store has joined: the invitation's, and its own.
    guard [32, 64].contains(identity.count) else {
      throw FleetTables.damaged("the identity of a fleet has \(identity.count) bytes")
    }
    guard !firstAuthority.isEmpty else { throw FleetTables.damaged("the first authority of a fleet is missing") }
    // Each object begins with the version of its format. Before the first sync there is no head.
    for (object, name) in [(authority, "authority"), (members, "members"), (head.isEmpty ? [1] : head, "head")]
    where object.first ?? 0 == 0 {
      throw FleetTables.damaged("the \(name) of a fleet has no version")
    }
    guard number >= 0, pushed >= -1, number <= ChangeLog.maximumNumber, pushed <= ChangeLog.maximumNumber else {
      throw FleetTables.damaged("the position of a fleet is impossible (\(number), \(pushed))")
    }
  }
}

/// What a store knows about a record: a row of the table `fleet_records`, or of `fleet_declarations`.
package struct StoredRecord: Sendable, Equatable {
  package var collection: String
  package var key: String
  package var name: [UInt8]
  package var counter: Int64
  package var clock: Int64
  package var author: [UInt8]
  package var isRemoved: Bool
  package var expires: Int64?
  /// The item's version when it was last in sync: 0 for no item, `notInStep` if it never was; `inStep` for a declaration.
  ///
  /// Below `notInStep` the carrier has lost it, see `lostVersion`.
  package var version: CommitNumber
  /// SHA-256 of the object.
  package var digest: [UInt8]
  /// Of the record of a declaration; nil for one of a value.
  package var declaration: StoredDeclaration?

  package static let notInStep: Int64 = -1
  package static let inStep: Int64 = 1

  /// The version of a record whose change the carrier has lost: pushed again, it is not a new change.
  package static func lost(_ version: CommitNumber) -> CommitNumber { notInStep - 1 - version }

  /// The item's version when it was last in sync, if the carrier has lost that change; nil if it has not.
  package var lostVersion: CommitNumber? { version < Self.notInStep ? Self.notInStep - 1 - version : nil }

  package init(
    collection: String, key: String, name: [UInt8], counter: Int64, clock: Int64, author: [UInt8], isRemoved: Bool,
    expires: Int64?, version: CommitNumber, digest: [UInt8], declaration: StoredDeclaration? = nil
  ) {
    self.declaration = declaration
    (self.collection, self.key, self.name, self.counter) = (collection, key, name, counter)
    (self.clock, self.author, self.isRemoved, self.expires) = (clock, author, isRemoved, expires)
    (self.version, self.digest) = (version, digest)
  }

  /// Whether its parts have the form of those of a record.
  var isPlausible: Bool {
    !name.isEmpty && author.count == 16 && counter > 0
      && counter <= 1 << 60 && (lostVersion ?? version) >= Self.notInStep
      && (lostVersion ?? version) <= ChangeLog.maximumNumber
  }

  /// Whether it has no value at a given time: removed, or expired.
  package func isAbsent(at time: Int64) -> Bool { isRemoved || expires.map { $0 <= time } ?? false }
}

/// The losing value of a concurrent change: a row of the table `fleet_conflicts`.
package struct StoredConflict: Sendable, Equatable {
  package let id: Int64
  package let collection: String
  package let key: String
  /// The version of the losing value in the key's history; 0 for a declaration, which has none.
  package let version: CommitNumber
  package let time: Int64
  package let winner: String
  package let loser: String
  /// The losing declaration, if it is about that.
  package let declaration: SharedDeclaration?
}

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
    var fleets: [StoredFleet] = []
    try connection.statement(
      """
      SELECT id, fleet, carrier, member, identity, first, number, sequence, synced, revision, head, authority, members, sum
      FROM fleets ORDER BY id
      """
    ).query { row in
      var fleet = StoredFleet(
        fleet: row.bytes(1), carrier: row.text(2), member: row.bytes(3),
        identity: row.withBytes(4) { SecretBytes(copying: $0) }, firstAuthority: row.bytes(5), number: row.integer(6),
        pushed: row.integer(7), synced: row.integer(8), revision: row.optionalText(9), head: row.bytes(10),
        authority: row.bytes(11), members: row.bytes(12), sum: row.bytes(13))
      fleet.id = row.integer(0)
      try fleet.check()
      fleets.append(fleet)
    }
    return fleets
  }

  /// - Returns: The number of the row.
  func save(_ fleet: StoredFleet) throws -> Int64 {
    let statement = try connection.statement(
      """
      INSERT INTO fleets(id, fleet, carrier, member, identity, first, number, sequence, synced, revision, head, authority,
        members, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
      ON CONFLICT DO UPDATE SET carrier = ?3, member = ?4, identity = ?5, number = ?7, sequence = ?8, synced = ?9, revision = ?10, head = ?11,
        authority = ?12, members = ?13, sum = ?14 RETURNING id
      """)
    // Unbound parameters are NULL.
    if let id = fleet.id { statement.bind(id, at: 1) }
    statement.bind(fleet.fleet, at: 2)
    statement.bind(fleet.carrier, at: 3)
    statement.bind(fleet.member, at: 4)
    fleet.identity.withUnsafeBytes { statement.bind(copying: $0, at: 5) }
    statement.bind(fleet.firstAuthority, at: 6)
    statement.bind(fleet.number, at: 7)
    statement.bind(fleet.pushed, at: 8)
    statement.bind(fleet.synced, at: 9)
    if let revision = fleet.revision { statement.bind(revision, at: 10) }
    statement.bind(fleet.head, at: 11)
    statement.bind(fleet.authority, at: 12)
    statement.bind(fleet.members, at: 13)
    statement.bind(fleet.sum, at: 14)
    return try statement.first { $0.integer(0) } ?? 0
  }

  private static func twinName(_ fleet: Int64) -> String { "fleet_twin_\(fleet)" }

  /// What the store knows about another host with its identity; in the table `meta`, where other versions pass it over.
  func twin(of fleet: Int64) throws -> [UInt8]? {
    let statement = try connection.statement("SELECT value FROM meta WHERE name = ?")
    statement.bind(Self.twinName(fleet), at: 1)
    return try statement.first { $0.bytes(0) }
  }

  func setTwin(_ bytes: [UInt8], of fleet: Int64) throws {
    let statement = try connection.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)")
    statement.bind(Self.twinName(fleet), at: 1)
    statement.bind(bytes, at: 2)
    try statement.run()
  }

  private func removeTwin(of fleet: Int64) throws {
    let statement = try connection.statement("DELETE FROM meta WHERE name = ?")
    statement.bind(Self.twinName(fleet), at: 1)
    try statement.run()
  }

  /// Keeps of a fleet what the store was in step with, and nothing with which it could go on.
  func leave(_ fleet: Int64) throws {
    try removeDeclarations(of: fleet)
    try removeTwin(of: fleet)
    for sql: StaticString in [
      "UPDATE fleets SET identity = zeroblob(32), revision = NULL WHERE id = ?",
      "DELETE FROM fleet_conflicts WHERE fleet = ?", "DELETE FROM fleet_rules WHERE fleet = ?",
    ] {
      let statement = try connection.statement(sql)
      statement.bind(fleet, at: 1)
      try statement.run()
    }
  }

  /// Deletes a fleet's row, and everything about it.
  func remove(_ fleet: Int64) throws {
    try removeDeclarations(of: fleet)
    try removeTwin(of: fleet)
    for sql: StaticString in [
      "DELETE FROM fleet_records WHERE fleet = ?", "DELETE FROM fleet_conflicts WHERE fleet = ?",
      "DELETE FROM fleet_rules WHERE fleet = ?", "DELETE FROM fleets WHERE id = ?",
    ] {
      let statement = try connection.statement(sql)
      statement.bind(fleet, at: 1)
      try statement.run()
    }
  }

  // MARK: Records

  func record(_ key: String, in collection: String, of fleet: Int64) throws -> StoredRecord? {
    let statement = try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ? AND collection = ? AND key = ?
      """)
    statement.bind(fleet, at: 1)
    statement.bind(collection, at: 2)
    statement.bind(key, at: 3)
    return try statement.first(Self.record)
  }

  func record(named name: [UInt8], of fleet: Int64) throws -> StoredRecord? {
    let statement = try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ? AND name = ?
      """)
    statement.bind(fleet, at: 1)
    statement.bind(name, at: 2)
    return try statement.first(Self.record) ?? declaration(named: name, of: fleet)
  }

  func records(of fleet: Int64) throws -> [StoredRecord] {
    var records: [StoredRecord] = []
    let statement = try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ?
      """)
    statement.bind(fleet, at: 1)
    try statement.query { records.append(try Self.record($0)) }
    return try records + declarations(of: fleet)
  }

  /// Above all names of 20 bytes that begin with a byte.
  private static func end(ofNamesBeginningWith first: UInt8) -> [UInt8] {
    first == .max ? [UInt8](repeating: .max, count: 21) : [first + 1]
  }

  /// The names and digests of the records on the carrier whose names begin with a byte.
  func digests(ofNamesBeginningWith first: UInt8, of fleet: Int64) throws -> [(name: [UInt8], digest: [UInt8])] {
    var digests: [(name: [UInt8], digest: [UInt8])] = []
    let tables: [StaticString] = [
      "SELECT name, digest FROM fleet_records WHERE fleet = ? AND name >= ? AND name < ? AND digest <> x''",
      "SELECT name, digest FROM fleet_declarations WHERE fleet = ? AND name >= ? AND name < ? AND digest <> x''",
    ]
    for sql in try hasDeclarations ? tables : [tables[0]] {
      let statement = try connection.statement(sql)
      statement.bind(fleet, at: 1)
      statement.bind([first], at: 2)
      statement.bind(Self.end(ofNamesBeginningWith: first), at: 3)
      try statement.query { digests.append(($0.bytes(0), $0.bytes(1))) }
    }
    return digests
  }

  /// The records of settings removed or expired before a time, and in sync.
  func forgettableRecords(of fleet: Int64, before time: Int64, atMost count: Int) throws -> [StoredRecord] {
    var records: [StoredRecord] = []
    let statement = try connection.statement(
      """
      SELECT collection, key, name, counter, clock, author, removed, expires, version, digest FROM fleet_records
      WHERE fleet = ?1 AND version >= 0 AND digest <> x''
      AND (removed AND clock < ?2 << 16 AND version = 0 OR expires < ?2) LIMIT ?3
      """)
    statement.bind(fleet, at: 1)
    statement.bind(time, at: 2)
    statement.bind(Int64(count), at: 3)
    try statement.query { records.append(try Self.record($0)) }
    return try records + forgettableDeclarations(of: fleet, before: time, atMost: count - records.count)
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
    let statement = try connection.statement(
      "INSERT OR REPLACE INTO fleet_records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
    statement.bind(fleet, at: 1)
    statement.bind(record.collection, at: 2)
    statement.bind(record.key, at: 3)
    statement.bind(record.name, at: 4)
    statement.bind(record.counter, at: 5)
    statement.bind(record.clock, at: 6)
    statement.bind(record.author, at: 7)
    statement.bind(record.isRemoved ? 1 : 0, at: 8)
    if let expires = record.expires { statement.bind(expires, at: 9) }
    statement.bind(record.version, at: 10)
    statement.bind(record.digest, at: 11)
    try statement.run()
  }

  func remove(_ record: StoredRecord, of fleet: Int64) throws {
    let statement = try connection.statement(
      record.declaration == nil
        ? "DELETE FROM fleet_records WHERE fleet = ? AND collection = ? AND key = ?"
        : "DELETE FROM fleet_declarations WHERE fleet = ? AND collection = ? AND key = ?")
    statement.bind(fleet, at: 1)
    statement.bind(record.collection, at: 2)
    statement.bind(record.key, at: 3)
    try statement.run()
  }

  /// The collections with records.
  func collections(of fleet: Int64) throws -> [String] {
    var collections: [String] = []
    let statement = try connection.statement("SELECT DISTINCT collection FROM fleet_records WHERE fleet = ?")
    statement.bind(fleet, at: 1)
    try statement.query { collections.append($0.text(0)) }
    return try Set((collections + declarations(of: fleet).map(\.collection)).map(ByteString.init)).map(\.string)
  }

  func removeRecords(in collection: String, of fleet: Int64) throws {
    let statement = try connection.statement("DELETE FROM fleet_records WHERE fleet = ? AND collection = ?")
    statement.bind(fleet, at: 1)
    statement.bind(collection, at: 2)
    try statement.run()
    try removeDeclarations(in: collection, of: fleet)
  }

  // MARK: Changes

  /// The keys of a collection that are not in sync.
  func keysNotInStep(_ collection: StoredCollection?, named name: String, of fleet: Int64, at time: Int64) throws
    -> [String]
  {
    var keys: [String] = []
    if let collection {
      let items = try connection.statement(
        """
        SELECT key FROM items WHERE collection = ?1 AND (expires IS NULL OR expires > ?4) AND NOT EXISTS (
          SELECT 1 FROM fleet_records AS r
          WHERE r.fleet = ?2 AND r.collection = ?3 AND r.key = items.key AND r.version = items.version)
        """)
      items.bind(collection.id, at: 1)
      items.bind(fleet, at: 2)
      items.bind(name, at: 3)
      items.bind(time, at: 4)
      try items.query { keys.append($0.text(0)) }
    }
    let removed = try connection.statement(
      """
      SELECT key FROM fleet_records AS r WHERE fleet = ?2 AND collection = ?3 AND version <> 0
      AND (expires IS NULL OR expires > ?4) AND NOT EXISTS (
        SELECT 1 FROM items WHERE items.collection = ?1 AND items.key = r.key
          AND (items.expires IS NULL OR items.expires > ?4))
      """)
    removed.bind(collection?.id ?? 0, at: 1)
    removed.bind(fleet, at: 2)
    removed.bind(name, at: 3)
    removed.bind(time, at: 4)
    try removed.query { keys.append($0.text(0)) }
    return keys
  }

  // MARK: Conflicts and rules

  func conflicts(of fleet: Int64) throws -> [StoredConflict] {
    var conflicts: [StoredConflict] = []
    let statement = try connection.statement(
      "SELECT id, collection, key, version, time, winner, loser FROM fleet_conflicts WHERE fleet = ? ORDER BY id")
    statement.bind(fleet, at: 1)
    let lost = try lostDeclarations()
    try statement.query {
      conflicts.append(
        StoredConflict(
          id: $0.integer(0), collection: $0.text(1), key: $0.text(2), version: $0.integer(3), time: $0.integer(4),
          winner: $0.text(5), loser: $0.text(6), declaration: lost[$0.integer(0)]))
    }
    return conflicts
  }

  /// - Returns: Its number.
  func addConflict(
    _ key: String, in collection: String, version: CommitNumber, time: Int64, winner: String, loser: String,
    of fleet: Int64
  ) throws -> Int64 {
    let statement = try connection.statement(
      """
      INSERT INTO fleet_conflicts(fleet, collection, key, version, time, winner, loser)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id
      """)
    statement.bind(fleet, at: 1)
    statement.bind(collection, at: 2)
    statement.bind(key, at: 3)
    statement.bind(version, at: 4)
    statement.bind(time, at: 5)
    statement.bind(winner, at: 6)
    statement.bind(loser, at: 7)
    return try statement.first { $0.integer(0) } ?? 0
  }

  func removeConflict(_ id: Int64, of fleet: Int64) throws {
    try removeLostDeclaration(of: id)
    let statement = try connection.statement("DELETE FROM fleet_conflicts WHERE id = ? AND fleet = ?")
    statement.bind(id, at: 1)
    statement.bind(fleet, at: 2)
    try statement.run()
  }

  func rules(of fleet: Int64) throws -> [String: Int64] {
    var rules: [String: Int64] = [:]
    let statement = try connection.statement("SELECT collection, rule FROM fleet_rules WHERE fleet = ?")
    statement.bind(fleet, at: 1)
    try statement.query { row in
      guard Self.rules.contains(row.integer(1)) else {
        throw Self.damaged("collection \"\(row.text(0))\" has rule \(row.integer(1))")
      }
      rules[row.text(0)] = row.integer(1)
    }
    return rules
  }

  func removeRule(for collection: String, of fleet: Int64) throws {
    let statement = try connection.statement("DELETE FROM fleet_rules WHERE fleet = ? AND collection = ?")
    statement.bind(fleet, at: 1)
    statement.bind(collection, at: 2)
    try statement.run()
  }

  func setRule(_ rule: Int64, for collection: String, of fleet: Int64) throws {
    let statement = try connection.statement("INSERT OR REPLACE INTO fleet_rules VALUES (?, ?, ?)")
    statement.bind(fleet, at: 1)
    statement.bind(collection, at: 2)
    statement.bind(rule, at: 3)
    try statement.run()
  }
}
