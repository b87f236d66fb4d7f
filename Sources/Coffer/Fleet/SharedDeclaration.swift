import CofferStorage

/// A declaration in the form that is pushed.
package struct SharedDeclaration: Equatable, Sendable {
  /// The application whose setting it is, and the version that it stated.
  package var application: String
  package var version: String?
  /// Kept as it came: a later version's declarations may have names that have no meaning here.
  package var json: String

  package init(application: String, version: String?, json: String) {
    (self.application, self.version, self.json) = (application, version, json)
  }

  package static func == (a: Self, b: Self) -> Bool {
    ByteString(a.json) == ByteString(b.json) && ByteString(a.application) == ByteString(b.application)
      && a.version.map(ByteString.init) == b.version.map(ByteString.init)
  }

  /// Its meaning; nil if it cannot be read here: it came from another host, maybe from a later version.
  package func declaration(of key: String, in collection: String) -> Declaration? {
    try? DeclarationTable.parse(json, key, in: collection)
  }

  /// The setting that it declares; nil if it cannot be read here.
  func setting(_ key: String, in collection: String) -> DeclaredSetting? {
    declaration(of: key, in: collection).map {
      DeclaredSetting(declaration: $0, application: application, version: version)
    }
  }

  /// Whether an older version of the same application has declared it.
  package func isOlder(than other: SharedDeclaration) -> Bool {
    ByteString(application) == ByteString(other.application) && VersionText.isLess(version, than: other.version)
  }
}

/// What a store knows about the record of a declaration, beside what it knows about any record.
package struct StoredDeclaration: Equatable, Sendable {
  /// Nil if it was removed.
  package var content: SharedDeclaration?
  /// What a program of this host declared when they were last in sync; nil for nothing.
  package var own: String?
  /// Whether the fleet shares the collection.
  package var isShared: Bool

  package init(content: SharedDeclaration?, own: String?, isShared: Bool) {
    (self.content, self.own, self.isShared) = (content, own, isShared)
  }

  /// Whether this host has another declaration than when they were last in sync, and not an older version's.
  func isChanged(by own: SharedDeclaration?) -> Bool {
    guard own.map({ ByteString($0.json) }) != self.own.map({ ByteString($0) }) else { return false }
    if let own, let content { return !own.isOlder(than: content) }
    return true
  }

  /// Whether the fleet's declaration holds on this host, where `own` is what a program declares.
  func holds(over own: SharedDeclaration?) -> Bool {
    isShared && content != nil && (own == nil || !isChanged(by: own))
  }
}

/// A declaration that differs from its record.
package struct LocalDeclaration: Sendable {
  package let collection: String
  package let key: String
  /// Nil if it was removed.
  package let content: SharedDeclaration?
  /// What a program of this host declares; nil for nothing.
  package let own: String?
  /// When and by whom it was declared, as far as the change log knows.
  package let modified: Int64
  package let author: String
  package let record: StoredRecord?
  /// Whether it was on the carrier, which has lost it: it is the change that it was, and no new one.
  package let isLost: Bool
}

extension DeclarationTable {
  /// Whether there are tables for the declarations of fleets.
  var hasShared: Bool { get throws { try Schema.version(connection).hasSharedDeclarations } }

  // MARK: On this host

  /// The declaration of a setting by a program of this host, also one that holds in the collection without being made for it;
  /// the first one if there are several.
  ///
  /// - Parameter shared: The collections of a fleet: what is declared for another one of them has a record of its own.
  func own(
    _ key: String, in collection: String, besides shared: [String] = []
  ) throws -> SharedDeclaration? {
    for (name, isSuite) in Self.names(collection) {
      let isOwn = ByteString(name) == ByteString(collection)
      if !isOwn, shared.contains(where: { ByteString($0) == ByteString(name) }) { continue }
      if isOwn {
        if let found = try ownText(key, in: name) { return found }
      } else if let found = try declared(key, in: name, isSuite: isSuite) {
        return SharedDeclaration(
          application: found.application, version: found.version, json: found.moved(to: collection).json)
      }
    }
    return nil
  }

  private func ownText(_ key: String, in collection: String) throws -> SharedDeclaration? {
    try connection.statement(
      """
      SELECT application, version, declaration FROM declarations JOIN applications ON applications.name = application
      WHERE collection = ? AND key = ? ORDER BY application LIMIT 1
      """, collection, key
    ).first {
      SharedDeclaration(application: $0.text(0), version: $0.optionalText(1), json: $0.text(2))
    }
  }

  /// The keys for which ``own(_:in:besides:)`` may find a declaration.
  func ownKeys(in collection: String, besides shared: [String]) throws -> Set<ByteString> {
    var keys: Set<ByteString> = []
    for (name, _) in Self.names(collection) {
      let isOwn = ByteString(name) == ByteString(collection)
      if !isOwn, shared.contains(where: { ByteString($0) == ByteString(name) }) { continue }
      try connection.statement("SELECT key FROM declarations WHERE collection = ?", name).query {
        keys.insert(ByteString($0.text(0)))
      }
    }
    return keys
  }

  // MARK: Of fleets

  /// The declaration of a setting by a fleet, if it holds here; one that cannot be read does not.
  func shared(_ key: String, in collection: String) throws -> DeclaredSetting? {
    let stored = try connection.statement(
      """
      SELECT application, application_version, declaration, own FROM fleet_declarations
      WHERE collection = ? AND key = ? AND shared AND declaration IS NOT NULL
      """, collection, key
    ).first(Self.stored)
    return try stored.flatMap { try setting($0, key, in: collection) }
  }

  /// The setting of a declaration by a fleet, if it holds here.
  private func setting(_ stored: StoredDeclaration, _ key: String, in collection: String) throws -> DeclaredSetting? {
    try stored.holds(over: own(key, in: collection)) ? stored.content?.setting(key, in: collection) : nil
  }

  /// The renames whose former names fleets keep: for versions that other hosts may run, and that no program here may know.
  ///
  /// A name that a program of this host has kept, and has ended, is not one of them, though the fleet may not know of its end yet.
  func renamesInFleets() throws -> [Rename] {
    guard try hasShared else { return [] }
    let rows = try connection.statement(
      """
      SELECT application, application_version, declaration, own, collection, key FROM fleet_declarations
      WHERE shared AND declaration IS NOT NULL AND instr(declaration, '"renamed"')
      """
    ).map { (collection: $0.text(4), key: $0.text(5), stored: Self.stored($0)) }
    return try rows.compactMap { collection, key, stored in
      guard let former = stored.content?.declaration(of: key, in: collection), let renamed = former.renamed,
        try !stored.isChanged(by: own(key, in: collection)),
        let new = try foundInForce(renamed.key.string, in: renamed.collection.string),
        let name = new.declaration.formerNames.first(where: { $0.place == former.place })
      else { return nil }
      return Rename(
        name, of: new.declaration, by: new.application,
        isConverted: name.isConverted || new.declaration.type != former.type, until: .max, isOfFleet: true)
    }
  }

  /// Whether a fleet shares a name: as a setting, or as one that is kept for older versions.
  func isInFleet(_ place: SettingPlace) throws -> Bool {
    guard try hasShared else { return false }
    return try connection.statement(
      "SELECT 1 FROM fleet_declarations WHERE collection = ? AND key = ? AND shared AND declaration IS NOT NULL",
      place.collection.string, place.key.string
    ).hasRow()
  }

  /// The declarations of a collection by fleets that hold here.
  ///
  /// - Parameter isSuite: Whether only those count that hold in its suites.
  func sharedDeclarations(in collection: String, isSuite: Bool) throws -> [DeclaredSetting] {
    let rows = try connection.statement(
      """
      SELECT application, application_version, declaration, own, key FROM fleet_declarations
      WHERE collection = ? AND shared AND declaration IS NOT NULL
      """, collection
    ).map { (key: $0.text(4), stored: Self.stored($0)) }
    return try rows.compactMap { try setting($0.stored, $0.key, in: collection) }
      .filter { $0.holds(in: collection, isSuite: isSuite) }
  }

  /// The declarations of secrets by fleets, and those that state former names, whether or not others overrule them.
  func sharedOfSecretsAndFormerNames() throws -> [DeclaredSetting] {
    var all: [DeclaredSetting] = []
    try connection.statement(
      """
      SELECT application, application_version, declaration, own, collection, key FROM fleet_declarations
      WHERE shared AND declaration IS NOT NULL AND (instr(declaration, '"secret"') OR instr(declaration, '"formerly"'))
      """
    ).query { row in
      guard let content = Self.stored(row).content,
        let declaration = content.declaration(of: row.text(5), in: row.text(4))
      else { return }
      all.append(DeclaredSetting(declaration: declaration, application: content.application, version: nil))
    }
    return all
  }

  private static func stored(_ row: borrowing Statement.Row) -> StoredDeclaration {
    StoredDeclaration(
      content: SharedDeclaration(application: row.text(0), version: row.optionalText(1), json: row.text(2)),
      own: row.optionalText(3), isShared: true)
  }

  /// What a program of this host declares while a fleet's declaration holds that differs from it.
  ///
  /// - Parameter application: The application whose settings are asked for; if it declares them only elsewhere, the fleet's
  ///   declaration is its own.
  func overruled(_ key: String, in collection: String, for application: String? = nil) throws -> DeclaredSetting? {
    guard try hasShared else { return nil }
    for (name, isSuite) in Self.names(collection) {
      if let shared = try shared(key, in: name), shared.holds(in: name, isSuite: isSuite) {
        guard let own = try own(key, in: name)?.setting(key, in: name),
          !own.declaration.agrees(with: shared.declaration)
        else { return nil }
        if let application, ByteString(application) == ByteString(shared.application),
          try !has(own.declaration.place, of: application)
        {
          return nil
        }
        return own
      }
      if try declared(key, in: name, isSuite: isSuite) != nil { return nil }
    }
    return nil
  }

  /// The declarations by programs of this host that fleets' overrule, and differ from them.
  package func overruled() throws -> [DeclaredSetting] {
    guard try hasShared else { return [] }
    let shared = try sharedInForce()
    return try own().filter { setting in
      shared[setting.declaration.place].map { !setting.declaration.agrees(with: $0.declaration) } ?? false
    }
  }

  /// The declarations by programs of this host, and those of fleets in place of the ones that they overrule.
  func combined(with own: [DeclaredSetting]) throws -> [DeclaredSetting] {
    let shared = try sharedInForce()
    let kept = own.filter { setting in
      guard let other = shared[setting.declaration.place] else { return true }
      return setting.declaration.agrees(with: other.declaration)
        && ByteString(setting.application) != ByteString(other.application)
    }
    return (kept + shared.values).sorted { $0.order < $1.order }
  }

  /// The declarations of fleets that hold here.
  private func sharedInForce() throws -> [SettingPlace: DeclaredSetting] {
    let rows = try connection.statement(
      """
      SELECT application, application_version, declaration, own, collection, key FROM fleet_declarations
      WHERE shared AND declaration IS NOT NULL
      """
    ).map { (collection: $0.text(4), key: $0.text(5), stored: Self.stored($0)) }
    var shared: [SettingPlace: DeclaredSetting] = [:]
    for (collection, key, stored) in rows {
      if let setting = try setting(stored, key, in: collection) { shared[setting.declaration.place] = setting }
    }
    return shared
  }
}

extension DeclaredSetting {
  /// The declaration of the same setting in a collection where it holds: an environment, or a suite's part.
  fileprivate func moved(to collection: String) -> Declaration {
    var moved = declaration
    moved.collection = collection
    moved.formerNames = declaration.formerNames.map { former in
      var former = former
      former.place = Rename(former, of: declaration, by: application).former(besides: collection) ?? former.place
      return former
    }
    moved.renamed = declaration.renamed.map { renamed in
      let former = Declaration.FormerName(place: renamed)
      return Rename(former, of: declaration, by: application).former(besides: collection) ?? renamed
    }
    return moved
  }

  var order: (ByteString, ByteString, ByteString) {
    (ByteString(declaration.collection), ByteString(declaration.name), ByteString(application))
  }
}
