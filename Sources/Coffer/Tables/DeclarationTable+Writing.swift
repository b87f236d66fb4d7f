import CofferStorage

extension DeclarationTable {
  /// Creates the tables, as far as they are missing.
  ///
  /// - Parameter until: Until when the versions may run that declared settings before versions were recorded.
  func create(at time: Int64, until: Int64) throws {
    guard try !Schema.version(connection).hasVersions else { return }
    try Schema.addDeclarations(to: connection)
    let applications = try connection.statement("SELECT name, version FROM applications")
      .map { (name: $0.text(0), version: $0.optionalText(1)) }
    for application in applications {
      try VersionTable(connection: connection).save(
        ProgramVersion(
          application: application.name, version: application.version, fingerprint: [], opened: time, until: until,
          declarations: try all(of: application.name)))
    }
  }

  /// Replaces the declarations of an application.
  ///
  /// - Parameter kept: Declarations of former names that are kept for older versions.
  /// - Throws: `CofferError.conflictingDeclarations` if another application declares a setting differently.
  func replace(
    _ declarations: [Declaration], kept: [Declaration], of application: String, version: String?, fingerprint: [UInt8]
  ) throws {
    try remove(application)
    try connection.statement("INSERT INTO applications VALUES (?, ?, ?)", application, version, fingerprint).run()
    for declaration in declarations {
      try refuseConflict(declaration, application)
      try insert(declaration, of: application)
    }
    for declaration in kept { try insert(declaration, of: application) }
  }

  /// Adds a declaration to those of an application.
  func insert(_ declaration: Declaration, of application: String) throws {
    try connection.statement(
      "INSERT INTO declarations VALUES (?, ?, ?, ?)", declaration.collection, declaration.name, application,
      declaration.json
    ).run()
  }

  /// Removes the declaration of a former name that is no longer kept, or keeps it for another setting.
  func removeKept(_ place: SettingPlace, of application: String, keptFor other: SettingPlace?) throws {
    guard var declaration = try declared(place.key.string, in: place.collection.string, by: application),
      declaration.renamed != nil
    else { return }
    try connection.statement(
      "DELETE FROM declarations WHERE collection = ? AND key = ? AND application = ?", place.collection.string,
      place.key.string, application
    ).run()
    guard let other else { return }
    declaration.renamed = other
    try insert(declaration, of: application)
  }

  func declared(_ key: String, in collection: String, by application: String) throws -> Declaration? {
    try connection.statement(
      "SELECT declaration FROM declarations WHERE collection = ? AND key = ? AND application = ?", collection, key,
      application
    ).first { try Self.parse($0.text(0), key, in: collection) }
  }

  /// Whether an application has a declaration of a name, in use or kept.
  func has(_ place: SettingPlace, of application: String) throws -> Bool {
    try declared(place.key.string, in: place.collection.string, by: application) != nil
  }

  /// All declarations of an application that can be read: it is about to replace them, and verification names the others.
  func all(of application: String) throws -> [Declaration] {
    try connection.statement("SELECT declaration FROM declarations WHERE application = ?", application)
      .map { try? Declaration(json: $0.text(0)) }.compactMap(\.self)
  }

  private func refuseConflict(_ declaration: Declaration, _ application: String) throws {
    try connection.statement(
      "SELECT application, declaration FROM declarations WHERE collection = ? AND key = ?", declaration.collection,
      declaration.name
    ).query { row in
      let other = try Self.parse(row.text(1), declaration.name, in: declaration.collection)
      guard other.agrees(with: declaration) else {
        throw CofferError.conflicting(declaration, application, other, row.text(0))
      }
    }
  }

  /// Removes the declarations of an application.
  ///
  /// - Returns: Whether there were any.
  @discardableResult
  func remove(_ application: String) throws -> Bool {
    guard try isThere else { return false }
    for sql: StaticString in [
      "DELETE FROM declarations WHERE application = ?", "DELETE FROM applications WHERE name = ?",
    ] {
      try connection.statement(sql, application).run()
    }
    return connection.changeCount > 0
  }
}
