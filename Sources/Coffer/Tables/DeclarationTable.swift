import CofferStorage

/// The tables `applications` and `declarations`: the declared settings of programs.
///
/// They are created with the first declaration, which raises the version of the tables: until then older programs
/// can open it.
package struct DeclarationTable {
  let connection: SQLiteConnection
  /// When versions may run that are not the newest, in milliseconds since 1970; nil if only declarations in force count.
  private let time: Int64?

  package init(connection: SQLiteConnection, at time: Int64? = nil) {
    (self.connection, self.time) = (connection, time)
  }

  var isThere: Bool { get throws { try Schema.version(connection).hasDeclarations } }

  // MARK: Reading

  /// The newest version of an application, whose declarations are in force, and what is known of one of its versions.
  struct Application {
    let version: String?
    let fingerprint: [UInt8]
    /// nil if that version has not declared anything.
    let own: (fingerprint: [UInt8], until: Int64)?
  }

  /// - Parameter version: The version of which something is to be known.
  func application(_ name: String, version: String?) throws -> Application? {
    guard try Schema.version(connection).hasVersions else { return nil }
    return try connection.statement(
      """
      SELECT a.version, a.fingerprint, v.fingerprint, v.until FROM applications a
      LEFT JOIN versions v ON v.application = a.name AND v.version = ?2 WHERE a.name = ?1
      """, name, version ?? ""
    ).first { row in
      Application(
        version: row.optionalText(0), fingerprint: row.bytes(1),
        own: row.isNull(2) ? nil : (row.bytes(2), row.integer(3)))
    }
  }

  /// The declaration of a setting, by a fleet or a program of this host; the first one if there are several.
  package func declaration(_ key: String, in collection: String) throws -> Declaration? {
    guard var found = try found(key, in: collection)?.declaration else { return nil }
    found.collection = collection
    return found
  }

  /// The former names that the declaration of a setting states, where the setting is in `collection`.
  func formerNames(of key: String, in collection: String) throws -> [SettingPlace] {
    guard let found = try found(key, in: collection) else { return [] }
    return found.declaration.formerNames.compactMap {
      Rename($0, of: found.declaration, by: found.application).former(besides: collection)
    }
  }

  /// Whether any declaration states a former name, also one of a version that is not in force and may run.
  var haveFormerNames: Bool {
    get throws {
      guard try isThere else { return false }
      var queries: [StaticString] = ["SELECT 1 FROM declarations WHERE instr(declaration, '\"formerly\"') LIMIT 1"]
      if try Schema.version(connection).hasVersions {
        queries.append("SELECT 1 FROM versions WHERE instr(declarations, '\"formerly\"') LIMIT 1")
      }
      if try hasShared {
        queries.append("SELECT 1 FROM fleet_declarations WHERE instr(declaration, '\"formerly\"') LIMIT 1")
      }
      return try queries.contains { try connection.statement($0).hasRow() }
    }
  }

  /// The declarations of secrets and those that state former names: of this host, also of versions that may not run any more, and of
  /// fleets.
  func ofSecretsAndFormerNames() throws -> [DeclaredSetting] {
    guard try isThere else { return [] }
    var all: [DeclaredSetting] = []
    try connection.statement(
      """
      SELECT collection, key, application, declaration FROM declarations
      WHERE instr(declaration, '"secret"') OR instr(declaration, '"formerly"')
      """
    ).query { row in
      all.append(
        DeclaredSetting(
          declaration: try Self.parse(row.text(3), row.text(1), in: row.text(0)), application: row.text(2), version: nil
        )
      )
    }
    if try hasShared { all += try sharedOfSecretsAndFormerNames() }
    guard try Schema.version(connection).hasVersions else { return all }
    var older: [DeclaredSetting] = []
    // Those of the newest one are read above.
    try connection.statement(
      """
      SELECT v.application, v.declarations FROM versions v JOIN applications a ON a.name = v.application
      WHERE ifnull(a.version, '') <> v.version AND (instr(v.declarations, '"secret"') OR instr(v.declarations, '"formerly"'))
      """
    ).query { row in
      for declaration in (try? Declaration.list(json: row.text(1))) ?? [] {
        older.append(DeclaredSetting(declaration: declaration, application: row.text(0), version: nil))
      }
    }
    return try all
      + older.map { setting in
        var declaration = setting.declaration
        // A name that has ended may be another setting of a newer version.
        declaration.formerNames = try declaration.formerNames.filter { former in
          let (key, collection) = (former.place.key.string, former.place.collection.string)
          return try declared(key, in: collection, by: setting.application).map { $0.renamed != nil } ?? true
        }
        return DeclaredSetting(declaration: declaration, application: setting.application, version: nil)
      }
  }

  private func found(_ key: String, in collection: String) throws -> DeclaredSetting? {
    guard try isThere else { return nil }
    if let found = try foundInForce(key, in: collection) { return found }
    let older = try older()
    guard !older.isEmpty else { return nil }
    for (name, isSuite) in Self.names(collection) {
      let place = SettingPlace(key, in: name)
      let found = older.first { $0.declaration.place == place && $0.holds(in: name, isSuite: isSuite) }
      if let found { return found }
    }
    return nil
  }

  /// What versions declare that may run and are not the newest, newer ones first.
  ///
  /// It counts for settings that nothing in force declares.
  func older() throws -> [DeclaredSetting] {
    guard let time, try Schema.version(connection).hasVersions else { return [] }
    let versions = try connection.statement(
      """
      SELECT v.application, v.version, v.declarations FROM versions v JOIN applications a ON a.name = v.application
      WHERE v.until > ? AND ifnull(a.version, '') <> v.version
      """, time
    ).map { row in
      (application: row.text(0), version: row.text(1), declarations: (try? Declaration.list(json: row.text(2))) ?? [])
    }
    return versions.sorted { VersionText.isLess($1.version, than: $0.version) }.flatMap { version in
      version.declarations.map {
        DeclaredSetting(
          declaration: $0, application: version.application, version: version.version.isEmpty ? nil : version.version,
          isInForce: false)
      }
    }
  }

  func foundInForce(_ key: String, in collection: String) throws -> DeclaredSetting? {
    let isInFleet = try hasShared
    for (name, isSuite) in Self.names(collection) {
      if isInFleet, let shared = try shared(key, in: name), shared.holds(in: name, isSuite: isSuite) { return shared }
      if let own = try declared(key, in: name, isSuite: isSuite) { return own }
    }
    return nil
  }

  /// The collections whose declarations hold in `collection`: its own, those of what it is an environment of, and those that a
  /// suite has a part of; see ``Declaration/hasSuites(of:)``.
  package static func names(_ collection: String) -> [(name: String, isSuite: Bool)] {
    var names = [(name: collection, isSuite: false)]
    var rest = collection[...]
    if let environment = CollectionEnvironment(collection: collection) {
      names.append((environment.parent, false))
      rest = environment.parent[...]
    }
    // No suite has an empty name.
    while let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")), slash != collection.startIndex {
      rest = rest[rest.utf8.index(after: slash)...]
      names.append((String(rest), true))
    }
    return names
  }

  /// The applications that declare settings of a collection, in order: programs of this host, and those of fleets.
  func applications(in collection: String) throws -> [String] {
    guard try isThere else { return [] }
    let (isInFleet, older) = (try hasShared, try older())
    var applications: [String] = []
    for (name, isSuite) in Self.names(collection) {
      var found = try ownApplications(in: name, isSuite: isSuite)
      if isInFleet { found += try sharedDeclarations(in: name, isSuite: isSuite).map(\.application) }
      found += older.filter { $0.holds(in: name, isSuite: isSuite) }.map(\.application)
      for application in found.map({ ByteString($0) }).sorted()
      where !applications.contains(where: { ByteString($0) == application }) {
        applications.append(application.string)
      }
    }
    return applications
  }

  private func ownApplications(in collection: String, isSuite: Bool) throws -> [String] {
    var applications: [String] = []
    try connection.statement(
      isSuite
        ? "SELECT application, key, declaration FROM declarations WHERE collection = ?"
        : "SELECT DISTINCT application FROM declarations WHERE collection = ?", collection
    ).query { row in
      let application = row.text(0)
      if isSuite, try !Self.parse(row.text(2), row.text(1), in: collection).hasSuites(of: application) { return }
      applications.append(application)
    }
    return applications
  }

  /// The applications that have declared settings in the store, now or before.
  func knownApplications() throws -> [String] {
    guard try isThere else { return [] }
    return try connection.statement("SELECT name FROM applications ORDER BY name").map { $0.text(0) }
  }

  /// The keys of a collection that are declared.
  func keys(in collection: String) throws -> Set<ByteString> {
    try applications(in: collection).reduce(into: Set()) { try $0.formUnion(keys(declaredBy: $1, in: collection)) }
  }

  /// The keys of a collection that an application declares, on this host or in a fleet.
  func keys(declaredBy application: String, in collection: String) throws -> Set<ByteString> {
    guard try isThere else { return [] }
    let (isInFleet, older) = (try hasShared, try older())
    var keys: Set<ByteString> = []
    for (name, isSuite) in Self.names(collection) {
      try connection.statement(
        "SELECT key, declaration FROM declarations WHERE collection = ? AND application = ?", name, application
      ).query { row in
        if isSuite, try !Self.parse(row.text(1), row.text(0), in: name).hasSuites(of: application) { return }
        keys.insert(ByteString(row.text(0)))
      }
      for other in older
      where ByteString(other.application) == ByteString(application)
        && other.holds(in: name, isSuite: isSuite)
      {
        keys.insert(ByteString(other.declaration.name))
      }
      guard isInFleet else { continue }
      for shared in try sharedDeclarations(in: name, isSuite: isSuite)
      where ByteString(shared.application) == ByteString(application) {
        keys.insert(ByteString(shared.declaration.name))
      }
    }
    return keys
  }

  /// The declaration by a program of this host; the first one if there are several.
  ///
  /// - Parameter isSuite: Whether only those count that hold in suites' parts of the collection.
  func declared(_ key: String, in collection: String, isSuite: Bool) throws -> DeclaredSetting? {
    var found: DeclaredSetting?
    try connection.statement(
      """
      SELECT application, version, declaration FROM declarations LEFT JOIN applications ON applications.name = application
      WHERE collection = ? AND key = ? ORDER BY application
      """, collection, key
    ).query { row in
      guard found == nil else { return }
      let declared = DeclaredSetting(
        declaration: try Self.parse(row.text(2), key, in: collection), application: row.text(0),
        version: row.optionalText(1))
      if declared.holds(in: collection, isSuite: isSuite) { found = declared }
    }
    return found
  }

  /// All declarations, by collection and key: those of fleets, and those by programs of this host that agree with them.
  package func all() throws -> [DeclaredSetting] {
    guard try isThere else { return [] }
    let inForce = try hasShared ? combined(with: own()) : own()
    let older = try older()
    guard !older.isEmpty else { return inForce }
    var seen = Set(inForce.map(\.declaration.place))
    return (inForce + older.filter { seen.insert($0.declaration.place).inserted }).sorted { $0.order < $1.order }
  }

  /// All declarations by programs of this host.
  func own() throws -> [DeclaredSetting] {
    try connection.statement(
      """
      SELECT collection, key, application, version, declaration FROM declarations
      JOIN applications ON applications.name = application ORDER BY collection, key, application
      """
    ).map { row in
      DeclaredSetting(
        declaration: try Self.parse(row.text(4), row.text(1), in: row.text(0)), application: row.text(2),
        version: row.optionalText(3))
    }
  }

  /// What is wrong with the declarations, in the words of the error of a command that needs one.
  package func problems() throws -> [StorageError] {
    guard try isThere else { return [] }
    var problems: [StorageError] = []
    func note(_ reason: String) { problems.append(.damaged(part: "table of declarations", reason: reason)) }
    var first: DeclaredSetting?
    try connection.statement(
      """
      SELECT collection, key, application, declaration, EXISTS (SELECT 1 FROM applications WHERE name = application)
      FROM declarations ORDER BY collection, key, application
      """
    ).query { row in
      let (collection, key, application) = (row.text(0), row.text(1), row.text(2))
      if row.integer(4) == 0 {
        note("that of \(KeyText.of(key, in: collection)) is of an application that is not listed")
      }
      do {
        let declaration = try Self.parse(row.text(3), key, in: collection)
        if let first, first.declaration.isSameSetting(as: declaration), !first.declaration.agrees(with: declaration) {
          note("those of \(KeyText.of(key, in: collection)) by \(first.application) and \(application) differ")
        } else {
          first = DeclaredSetting(declaration: declaration, application: application, version: nil)
        }
      } catch let error as StorageError {
        problems.append(error)
      }
    }
    return try problems + VersionTable(connection: connection).problems()
  }

  static func parse(_ json: String, _ key: String, in collection: String) throws -> Declaration {
    func damaged(_ reason: String) -> StorageError {
      .damaged(part: "table of declarations", reason: "that of \(KeyText.of(key, in: collection)) \(reason)")
    }
    let declaration: Declaration
    do {
      declaration = try Declaration(json: json)
    } catch CofferError.malformedSettings(_, let reason) {
      throw damaged("does not parse: \(reason)")
    }
    guard ByteString(declaration.name) == ByteString(key), ByteString(declaration.collection) == ByteString(collection)
    else { throw damaged("is another setting's") }
    return declaration
  }
}
