import CofferStorage

/// The tables inside a store.
package enum Schema {
  /// `user_version` of new stores.
  static let version = Version(number: 11)
  /// `user_version` of stores with declared settings.
  static let versionWithDeclarations = Version(number: 14)
  /// `user_version` of stores that have been in a fleet, which also have the tables of declarations.
  static let versionWithFleets = Version(number: 15)
  /// `user_version` of stores whose fleets share declarations, which have all tables; the newest that this code reads.
  static let versionWithSharedDeclarations = Version(number: 16)

  /// The meaning of `user_version`: the existing tables.
  package struct Version: Equatable {
    package let number: Int

    /// 12 and 13 are 14 and 15 without the tables of versions: the next declaration adds them.
    var hasDeclarations: Bool { number > Schema.version.number }
    var hasVersions: Bool { number >= Schema.versionWithDeclarations.number }
    var hasFleets: Bool { number == 13 || number >= Schema.versionWithFleets.number }
    var hasSharedDeclarations: Bool { number >= Schema.versionWithSharedDeclarations.number }
  }

  /// The statements that create the tables, as SQLite stores them: a store has exactly these.
  private static let statements: [StaticString] = [
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) STRICT, WITHOUT ROWID",
    // AUTOINCREMENT: the id of a removed collection never names another one in the change log.
    """
    CREATE TABLE collections(
      id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, flags INTEGER NOT NULL DEFAULT 0,
      history_count INTEGER, history_age INTEGER) STRICT
    """,
    // Long columns come last, on overflow pages, which reading the columns before does not touch.
    """
    CREATE TABLE items(
      collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, modified INTEGER NOT NULL,
      type INTEGER NOT NULL, expires INTEGER, due INTEGER, author TEXT, metadata BLOB, data BLOB NOT NULL,
      PRIMARY KEY(collection, key)) STRICT, WITHOUT ROWID
    """,
    // Finds expired items, at no cost if there are none.
    "CREATE INDEX items_by_expiry ON items(expires) WHERE expires IS NOT NULL",
    """
    CREATE TABLE history(
      collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, modified INTEGER NOT NULL,
      ended INTEGER NOT NULL, time INTEGER NOT NULL, type INTEGER NOT NULL, expires INTEGER, author TEXT,
      ended_by TEXT, metadata BLOB, data BLOB NOT NULL, PRIMARY KEY(collection, key, version)) STRICT, WITHOUT ROWID
    """,
    // Finds old versions without reading the rest.
    "CREATE INDEX history_by_time ON history(collection, time)",
    """
    CREATE TABLE vault(
      generation INTEGER PRIMARY KEY, id BLOB NOT NULL, mac BLOB NOT NULL, sealed BLOB NOT NULL,
      slots BLOB NOT NULL, succession BLOB NOT NULL) STRICT
    """,
    // The noise comes first, so that it is in the page that the log's checksum covers, never on an overflow page.
    """
    CREATE TABLE changes(
      sequence INTEGER PRIMARY KEY, noise BLOB NOT NULL, time INTEGER NOT NULL, writer INTEGER NOT NULL,
      author TEXT, total INTEGER NOT NULL, digest BLOB NOT NULL, action TEXT, link BLOB NOT NULL,
      keys BLOB NOT NULL) STRICT
    """,
  ]

  /// Added with the first declaration.
  private static let declarationStatements: [StaticString] = [
    """
    CREATE TABLE applications(
      name TEXT PRIMARY KEY, version TEXT, fingerprint BLOB NOT NULL) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE declarations(
      collection TEXT NOT NULL, key TEXT NOT NULL, application TEXT NOT NULL, declaration TEXT NOT NULL,
      PRIMARY KEY(collection, key, application)) STRICT, WITHOUT ROWID
    """,
  ]

  /// Added with the first declaration since versions are recorded.
  private static let versionStatements: [StaticString] = [
    """
    CREATE TABLE versions(
      application TEXT NOT NULL, version TEXT NOT NULL, fingerprint BLOB NOT NULL, opened INTEGER NOT NULL,
      until INTEGER NOT NULL, declarations TEXT NOT NULL, PRIMARY KEY(application, version)) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE renames(
      collection TEXT NOT NULL, key TEXT NOT NULL, former_collection TEXT NOT NULL, former_key TEXT NOT NULL,
      application TEXT NOT NULL, suites INTEGER NOT NULL, converted INTEGER NOT NULL, until INTEGER NOT NULL,
      PRIMARY KEY(collection, key, former_collection, former_key)) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE behind(
      collection TEXT NOT NULL, key TEXT NOT NULL, source_collection TEXT NOT NULL, source_key TEXT NOT NULL,
      version INTEGER NOT NULL, refused INTEGER NOT NULL, PRIMARY KEY(collection, key)) STRICT, WITHOUT ROWID
    """,
  ]

  /// Added with the first fleet.
  private static let fleetStatements: [StaticString] = [
    """
    CREATE TABLE fleets(
      id INTEGER PRIMARY KEY, fleet BLOB NOT NULL, carrier TEXT NOT NULL, member BLOB NOT NULL, identity BLOB NOT NULL,
      first BLOB NOT NULL, number INTEGER NOT NULL, sequence INTEGER NOT NULL, synced INTEGER NOT NULL, revision TEXT,
      head BLOB NOT NULL, authority BLOB NOT NULL, members BLOB NOT NULL, sum BLOB NOT NULL) STRICT
    """,
    """
    CREATE TABLE fleet_records(
      fleet INTEGER NOT NULL, collection TEXT NOT NULL, key TEXT NOT NULL, name BLOB NOT NULL, counter INTEGER NOT NULL,
      clock INTEGER NOT NULL, author BLOB NOT NULL, removed INTEGER NOT NULL, expires INTEGER, version INTEGER NOT NULL,
      digest BLOB NOT NULL, PRIMARY KEY(fleet, collection, key)) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX fleet_records_by_name ON fleet_records(fleet, name)",
    """
    CREATE TABLE fleet_conflicts(
      id INTEGER PRIMARY KEY, fleet INTEGER NOT NULL, collection TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
      time INTEGER NOT NULL, winner TEXT NOT NULL, loser TEXT NOT NULL) STRICT
    """,
    """
    CREATE TABLE fleet_rules(
      fleet INTEGER NOT NULL, collection TEXT NOT NULL, rule INTEGER NOT NULL,
      PRIMARY KEY(fleet, collection)) STRICT, WITHOUT ROWID
    """,
  ]

  /// Added with the first fleet, and to the stores of fleets from before declarations were shared.
  private static let sharedDeclarationStatements: [StaticString] = [
    // The collection comes first: each look at a setting asks for it.
    """
    CREATE TABLE fleet_declarations(
      collection TEXT NOT NULL, key TEXT NOT NULL, fleet INTEGER NOT NULL, name BLOB NOT NULL, counter INTEGER NOT NULL,
      clock INTEGER NOT NULL, author BLOB NOT NULL, version INTEGER NOT NULL, digest BLOB NOT NULL, shared INTEGER NOT NULL,
      application TEXT, application_version TEXT, declaration TEXT, own TEXT,
      PRIMARY KEY(collection, key, fleet)) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX fleet_declarations_by_name ON fleet_declarations(fleet, name)",
    """
    CREATE TABLE fleet_lost_declarations(
      conflict INTEGER PRIMARY KEY, application TEXT NOT NULL, application_version TEXT, declaration TEXT NOT NULL) STRICT
    """,
  ]

  /// What SQLite adds itself: for AUTOINCREMENT, and, without a statement, the index of UNIQUE.
  private static let ownTable: StaticString = "CREATE TABLE sqlite_sequence(name,seq)"
  private static let ownIndex: StaticString = "sqlite_autoindex_collections_1"

  /// Fills an empty database, in one transaction with its row in the change log like any other.
  package static func create(in connection: SQLiteConnection) throws {
    try connection.beginWrite(.full)
    do {
      try connection.setTableVersion(version.number)
      for statement in statements { try connection.execute("\(statement)") }
      try ChangeLog(connection: connection).append(ChangeSet(), time: Clock.millisecondsSince1970, writer: 0)
      try connection.commit()
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  /// Creates the tables of declarations and of versions, as far as they are missing, in the current transaction.
  package static func addDeclarations(to connection: SQLiteConnection) throws {
    let present = try version(connection)
    if !present.hasDeclarations { for statement in declarationStatements { try connection.execute("\(statement)") } }
    if !present.hasVersions { for statement in versionStatements { try connection.execute("\(statement)") } }
    guard !present.hasSharedDeclarations else { return }
    let new = present.hasFleets ? versionWithFleets : versionWithDeclarations
    try connection.setTableVersion(new.number)
  }

  /// Creates the tables of fleets, in the current transaction.
  static func addFleets(to connection: SQLiteConnection) throws {
    try addDeclarations(to: connection)
    for statement in fleetStatements { try connection.execute("\(statement)") }
    try connection.setTableVersion(versionWithFleets.number)
  }

  /// Creates the tables of the declarations that fleets share, in the current transaction.
  static func addSharedDeclarations(to connection: SQLiteConnection) throws {
    try addDeclarations(to: connection)
    for statement in sharedDeclarationStatements { try connection.execute("\(statement)") }
    try connection.setTableVersion(versionWithSharedDeclarations.number)
  }

  /// The version of the tables.
  static func version(_ connection: SQLiteConnection) throws -> Version {
    Version(number: try connection.tableVersion())
  }

  /// Refuses tables of another version, and anything that Coffer did not create: SQLite would evaluate its expressions.
  ///
  /// - Returns: The version of the tables.
  @discardableResult
  package static func check(_ connection: SQLiteConnection) throws -> Version {
    let version = try version(connection)
    try check(version: version.number)
    if let problem = try problem(connection) { throw CofferError.damaged(part: "schema", reason: problem) }
    return version
  }

  /// The difference from Coffer's schema; nil if there is none.
  package static func problem(_ connection: SQLiteConnection) throws -> String? {
    let version = try version(connection)
    var expected = statements + [ownTable, ownIndex]
    if version.hasDeclarations { expected += declarationStatements }
    if version.hasVersions { expected += versionStatements }
    if version.hasFleets { expected += fleetStatements }
    if version.hasSharedDeclarations { expected += sharedDeclarationStatements }
    var missing = expected[...]
    var foreign: String?
    // Usually in order of creation; VACUUM creates the indexes last.
    try connection.statement("SELECT coalesce(sql, name), type, name FROM sqlite_schema").query { row in
      let index = row.withBytes(0) { text in
        missing.firstIndex {
          text.elementsEqual(UnsafeRawBufferPointer(start: $0.utf8Start, count: $0.utf8CodeUnitCount))
        }
      }
      if let index { missing.remove(at: index) } else if foreign == nil { foreign = "\(row.text(1)) \(row.text(2))" }
    }
    if let foreign { return "the \(foreign) was not created by Coffer" }
    return missing.isEmpty ? nil : "a table or an index is missing"
  }

  /// Refuses tables of another version.
  package static func check(version found: Int) throws {
    let newest = versionWithSharedDeclarations.number
    guard found <= newest else {
      throw CofferError.newerFormat(part: "schema", found: found, supported: newest)
    }
    guard found >= version.number else {
      throw CofferError.damaged(
        part: "schema",
        reason:
          "its version is \(found); if a pre-release version made it, export it with that version")
    }
  }
}
