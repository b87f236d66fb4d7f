// Whether a setting may be set: every value that a tool sets comes by here, whichever command sets it.

extension Session {
  /// The rules of this transaction.
  package var settingRules: SettingRules? {
    get { transaction.rules ?? core.options.settingRules }
    set { transaction.rules = newValue }
  }

  /// Throws if a change may not be made: where an administrator has locked the key, or its setting is declared otherwise.
  func requireSettable(_ mutation: Mutation, _ key: String, in collection: String) throws {
    switch mutation {
    case .set(let item): try requireSettable(item.object, key, in: collection)
    case .replaced(let new): if let object = new.object { try requireSettable(object, key, in: collection) }
    // What lies below a lock may go, and so may what is not declared.
    case .removed: break
    }
  }

  private func requireSettable(_ object: HeldValue, _ key: String, in collection: String) throws {
    let rules = settingRules
    var effective: EffectiveSettings?
    if let rules { effective = try self.effective(collection, rules) }
    if let effective, effective.locked(key) != nil, try !isStored(object, key, in: collection) {
      try effective.requireUnlocked(key)
    }
    if let rules, try !isStored(object, key, in: collection) {
      try requireUnlockedNames(of: key, in: collection, rules)
    }
    let checksName = rules?.allowsUndeclared == false
    guard core.options.checksDeclarations || checksName else { return }
    guard let declaration = try CofferError.translating({ try declarations.declaration(key, in: collection) }) else {
      if checksName, try !isThere(key, in: collection),
        try effective?.hasDeclarations == true || isFormerName(key, in: collection)
          || isSettingElsewhere(key, in: collection)
      {
        throw try undeclared(key, in: collection)
      }
      return
    }
    guard core.options.checksDeclarations else { return }
    let value = try core.value(object, key, in: collection)
    guard let hidden = declaration.problem(of: value, showsValue: false) else { return }
    let isHidden =
      try storedCollection(collection)?.isSealed ?? false
      || CofferError.translating { try isDeclaredSecret(key, in: collection) }
    let reason = isHidden ? hidden : declaration.problem(of: value) ?? hidden
    throw CofferError.invalidValue(collection: collection, key: key, reason: reason)
  }

  /// The former names of a setting that have ended, and name nothing else now: an administrator's file may still have them.
  private func endedNames(of key: String, in collection: String) throws -> [SettingPlace] {
    try CofferError.translating {
      try declarations.formerNames(of: key, in: collection).filter {
        try declarations.declaration($0.key.string, in: $0.collection.string) == nil
      }
    }
  }

  private func effective(_ collection: String, _ rules: SettingRules) throws -> EffectiveSettings {
    if let known = transaction.effective[ByteString(collection)] { return known }
    let settings = try CofferError.translating { try effectiveSettings(of: collection, rules.files) }
    transaction.effective[ByteString(collection)] = settings
    return settings
  }

  /// Throws if an administrator has locked a key, or another name of its setting.
  func requireUnlocked(_ key: String, in collection: String) throws {
    guard let settingRules else { return }
    try effective(collection, settingRules).requireUnlocked(key)
    try requireUnlockedNames(of: key, in: collection, settingRules)
  }

  /// One setting has one lock, whatever an administrator calls it.
  private func requireUnlockedNames(of key: String, in collection: String, _ rules: SettingRules) throws {
    for other in try otherNames(of: key, in: collection) + endedNames(of: key, in: collection) {
      let lock = try effective(other.collection.string, rules).locked(other.key.string)
      guard let file = lock?.place.file else { continue }
      throw CofferError.lockedByAdministrator(collection: collection, key: key, file: "\(file), as \(other)")
    }
  }

  /// Whether a key has this value already.
  private func isStored(_ object: HeldValue, _ key: String, in collection: String) throws -> Bool {
    guard let present = try item(key, in: collection)?.object else { return false }
    return try core.value(present, key, in: collection) == core.value(object, key, in: collection)
  }

  /// Whether a key is set, in the collection or in what it is an environment of.
  private func isThere(_ key: String, in collection: String) throws -> Bool {
    if try version(key, in: collection) > 0 { return true }
    guard let parent = CollectionEnvironment(collection: collection)?.parent else { return false }
    return try version(key, in: parent) > 0
  }

  /// Whether a key is a former name of a setting, which may be in another collection now.
  private func isFormerName(_ key: String, in collection: String) throws -> Bool {
    try CofferError.translating { try keysWithFormerNames()?.successor(of: key, in: collection) != nil }
  }

  /// Whether a key of an application's own collection is a setting that it declares in another one, as `srv/host` is.
  private func isSettingElsewhere(_ key: String, in collection: String) throws -> Bool {
    guard key.utf8.contains(UInt8(ascii: "/")) else { return false }
    return try CofferError.translating {
      let declared = try declaredKeys()
      guard let (other, rest) = declared.split(key), let setting = declared.setting(rest, in: other) else {
        return false
      }
      let own = ByteString(CollectionEnvironment(collection: collection)?.parent ?? collection)
      return setting.owners.contains { ByteString($0.application) == own }
    }
  }

  private func undeclared(_ key: String, in collection: String) throws -> CofferError {
    let declared = try CofferError.translating { try declaredKeys() }
    return .undeclaredSetting(collection: collection, key: key, reason: declared.absence(of: key, in: collection))
  }

  /// The declared settings, if any of them states a former name: else they need not be read.
  private func keysWithFormerNames() throws -> DeclaredKeys? {
    let hasFormerNames = try transaction.hasFormerNames ?? declarations.haveFormerNames
    transaction.hasFormerNames = hasFormerNames
    return hasFormerNames ? try declaredKeys() : nil
  }

  /// The declared settings, as this transaction sees them.
  func declaredKeys() throws -> DeclaredKeys {
    if let known = transaction.declaredKeys { return known }
    let keys = try DeclaredKeys(declarations, renames().all, secretNames())
    transaction.declaredKeys = keys
    return keys
  }
}

extension Reading where Self: ~Copyable {
  /// Throws if a tool may not set a value: before the change that is to set it, and others, is begun.
  ///
  /// - Throws: `CofferError.lockedByAdministrator`, `.undeclaredSetting`, `.invalidValue`.
  package borrowing func requireSettable(_ value: Value, forKey key: String, inCollection collection: String) throws {
    try session.requireSettable(session.core.setting(value, key, in: collection), key, in: collection)
  }

  /// Throws if an administrator has locked a key: for a command that sets this one, even to the value that is stored.
  ///
  /// - Throws: `CofferError.lockedByAdministrator`.
  package borrowing func requireUnlocked(forKey key: String, inCollection collection: String) throws {
    try session.requireUnlocked(key, in: collection)
  }
}
