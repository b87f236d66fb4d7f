/// The settings declared by a store's programs, as tools need them.
package struct DeclaredKeys {
  /// One setting, and the applications that declare it.
  package struct Setting {
    package let declaration: Declaration
    package var owners: [(application: String, version: String?)]
    /// Whether it is in force; if not, an older version declares it, which may run.
    package let isInForce: Bool
    /// What a program of this host declares, where a fleet's declaration holds that differs.
    package fileprivate(set) var overruled: DeclaredSetting?

    /// Says that no value suits both; nil if one may.
    package var disagreement: String? {
      guard let owner = owners.first else { return nil }
      return overruled?.disagreement(
        on: DeclaredSetting(declaration: declaration, application: owner.application, version: owner.version))
    }

    /// Whether it is a setting of a collection, where only those count that suites have for themselves if `isSuite`.
    fileprivate func holds(in collection: String, isSuite: Bool) -> Bool {
      ByteString(declaration.collection) == ByteString(collection)
        && (!isSuite || owners.contains { declaration.hasSuites(of: $0.application) })
    }
  }

  /// Each setting once, ordered by collection and key.
  package let settings: [Setting]
  /// The renamed settings whose former names are kept.
  package let renames: [Rename]
  private let secrets: SecretNames
  private let places: [Name: Int]

  private struct Name: Hashable {
    let collection: ByteString
    let key: ByteString

    init(_ key: String, _ collection: String) {
      (self.collection, self.key) = (ByteString(collection), ByteString(key))
    }
  }

  package init(_ transaction: borrowing some Reading & ~Copyable) throws {
    let session = transaction.session
    self = try session.reading {
      try DeclaredKeys(session.declarations, session.renames().all, session.secretNames())
    }
  }

  init(_ table: DeclarationTable, _ renames: [Rename], _ secrets: SecretNames) throws {
    try self.init(table.all(), renames, overruled: table.overruled(), secrets)
  }

  init(
    _ all: [DeclaredSetting], _ renames: [Rename], overruled: [DeclaredSetting] = [], _ secrets: SecretNames
  ) {
    var settings: [Setting] = []
    var places: [Name: Int] = [:]
    for declared in all {
      let owner = (application: declared.application, version: declared.version)
      let name = Name(declared.declaration.name, declared.declaration.collection)
      if let place = places[name] {
        settings[place].owners.append(owner)
      } else {
        places[name] = settings.count
        settings.append(Setting(declaration: declared.declaration, owners: [owner], isInForce: declared.isInForce))
      }
    }
    for own in overruled {
      guard let place = places[Name(own.declaration.name, own.declaration.collection)],
        settings[place].overruled == nil
      else { continue }
      settings[place].overruled = own
    }
    (self.settings, self.places, self.renames, self.secrets) = (settings, places, renames, secrets)
  }

  /// The declaration of a key: its own, or that of a suite within a collection.
  package func setting(_ key: String, in collection: String) -> Setting? {
    for (name, isSuite) in DeclarationTable.names(collection) {
      guard let place = places[Name(key, name)], settings[place].holds(in: name, isSuite: isSuite) else { continue }
      return settings[place]
    }
    return nil
  }

  /// Whether a setting is declared as a secret, by any version and under any name: its value is hidden also where it is text.
  package func isSecret(_ key: String, in collection: String) -> Bool { secrets.contains(key, in: collection) }

  /// The settings declared for a collection.
  package func settings(in collection: String) -> [Setting] {
    let names = DeclarationTable.names(collection)
    return settings.filter { setting in
      names.contains { name, isSuite in setting.holds(in: name, isSuite: isSuite) }
    }
  }

  /// The rest of the sentence that begins with a key that is not declared: that it is not, and which was meant, or most likely
  /// meant.
  package func absence(of key: String, in collection: String) -> String {
    if let renamed = successor(of: key, in: collection) {
      return "not declared any more; it is called \"\(renamed)\" now."
    }
    if let (other, rest) = split(key) {
      return "not declared; key \"\(rest)\" of collection \"\(other)\" is. Name the collection with -c."
    }
    return near(key, in: collection).map { "not declared; did you mean \"\($0)\"?" } ?? "not declared."
  }

  /// The name now of a setting of which this is a former name, also in an environment and in a suite's part of the collection.
  package func successor(of key: String, in collection: String) -> SettingPlace? {
    let key = ByteString(key)
    for setting in settings {
      for former in setting.declaration.formerNames where former.place.key == key {
        for owner in setting.owners {
          let rename = Rename(former, of: setting.declaration, by: owner.application)
          if let place = rename.current(besides: collection) { return place }
        }
      }
    }
    return nil
  }

  /// The collection and the key that are declared, if a key with slashes is the name of both.
  package func split(_ key: String) -> (collection: String, key: String)? {
    for slash in key.utf8.indices where key.utf8[slash] == UInt8(ascii: "/") {
      let (collection, rest) = (String(key[..<slash]), String(key[key.utf8.index(after: slash)...]))
      if setting(rest, in: collection) != nil { return (collection, rest) }
    }
    return nil
  }

  /// The declared key most likely meant by a mistyped one.
  package func near(_ key: String, in collection: String) -> String? {
    let own = settings(in: collection).map(\.declaration.name)
    if let near = NearName.best(for: key, among: own) { return KeyText.of(near, in: collection) }
    let all = settings.map { KeyText.of($0.declaration.name, in: $0.declaration.collection) }
    return NearName.best(for: KeyText.of(key, in: collection), among: all)
  }
}
