import CofferStorage

/// The names of secrets: text under them is hidden wherever values are shown.
///
/// A name is a secret's if any version of a program that the store knows declares it as one, on this host or in a fleet, or what it
/// was renamed to. That another version declares it as text, or that the version may not run any more, does not make known what
/// was stored under it.
package struct SecretNames {
  private let secrets: [ByteString: [DeclaredSetting]]
  private let renames: [ByteString: [Rename]]

  /// - Parameters:
  ///   - declared: The declarations of secrets, and those that state former names.
  ///   - renames: The renames whose former names are kept, whether or not a declaration still states them.
  init(_ declared: [DeclaredSetting], _ renames: [Rename]) {
    secrets = Dictionary(grouping: declared.filter { $0.declaration.type == .secret }) {
      ByteString($0.declaration.name)
    }
    let stated = declared.flatMap { setting in
      setting.declaration.formerNames.map { Rename($0, of: setting.declaration, by: setting.application) }
    }
    self.renames = secrets.isEmpty ? [:] : Dictionary(grouping: renames + stated, by: \.former.key)
  }

  var isEmpty: Bool { secrets.isEmpty }

  /// The keys that may be those of secrets in some collection.
  var keys: Set<ByteString> { Set(secrets.keys).union(renames.keys) }

  /// Whether a key is the name of a secret, or was one.
  func contains(_ key: String, in collection: String) -> Bool {
    guard !isEmpty else { return false }
    var seen: Set<SettingPlace> = []
    var open = [SettingPlace(key, in: collection)]
    while let place = open.popLast() {
      if isDeclared(place) { return true }
      let collection = place.collection.string
      for rename in renames[place.key, default: []] {
        guard let next = rename.current(besides: collection), seen.insert(next).inserted else { continue }
        open.append(next)
      }
    }
    return false
  }

  private func isDeclared(_ place: SettingPlace) -> Bool {
    guard let declared = secrets[place.key] else { return false }
    return DeclarationTable.names(place.collection.string).contains { name, isSuite in
      declared.contains { $0.holds(in: name, isSuite: isSuite) }
    }
  }
}

extension Session {
  /// Whether a setting is declared as a secret, also under a former name.
  package func isDeclaredSecret(_ key: String, in collection: String) throws -> Bool {
    // One that cannot be read is an error, not text to show.
    if try declarations.declaration(key, in: collection)?.type == .secret { return true }
    return try secretNames().contains(key, in: collection)
  }

  /// The names of secrets, as this transaction sees them.
  func secretNames() throws -> SecretNames {
    if let known = transaction.secretNames { return known }
    let names = SecretNames(try declarations.ofSecretsAndFormerNames(), try renames().all)
    transaction.secretNames = names
    return names
  }

  /// Changes declarations, and turns the text under names that were those of secrets into secret values where nothing says so any
  /// more.
  func keepingSecrets<Result>(_ body: () throws -> Result) throws -> Result {
    let before = try secretNames()
    let result = try body()
    guard !before.isEmpty else { return result }
    transaction.forgetDeclarations()
    let after = try secretNames()
    for collection in try collections.all().map(\.0) {
      for key in before.keys.map(\.string)
      where before.contains(key, in: collection) && !after.contains(key, in: collection) {
        // What a program declares as something else now, it shows.
        if try declarations.declaration(key, in: collection) == nil { try veil(key, in: collection) }
      }
    }
    return result
  }

  /// Turns the text under a name, earlier text included, into secret values.
  ///
  /// Sealed values stay: they are hidden anyway.
  func veil(_ key: String, in collection: String) throws {
    guard let stored = try collections.collection(named: collection), !stored.isSealed else { return }
    if let item = try storedItem(key, in: collection), let new = try veiled(item, key, in: collection) {
      _ = try setAlone(new, key, in: collection)
    }
    for row in try history.rows(key, in: stored.id, isSealed: false) {
      guard let new = try veiled(row.item, key, in: collection) else { continue }
      try history.rewrite(new, key, in: stored.id, version: row.version)
    }
  }

  private func veiled(_ item: HeldItem, _ key: String, in collection: String) throws -> HeldItem? {
    guard !item.isSealed, let value = try core.value(item.object, key, in: collection).veiled else { return nil }
    return HeldItem(object: HeldValue(try value.stored), metadata: item.metadata, dates: item.dates)
  }
}
