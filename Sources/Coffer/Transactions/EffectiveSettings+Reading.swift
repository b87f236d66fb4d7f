extension EffectiveSettings {
  /// Finds the value in force.
  ///
  /// - Parameters:
  ///   - declaration: The declaration of the setting.
  ///   - stored: Returns what a collection has.
  ///   - value: Returns its value; nil where that is not to be opened.
  private func search<Stored>(
    _ key: String, by declaration: Declaration?, _ transaction: borrowing some Reading & ~Copyable,
    stored: (_ collection: String) throws -> Stored?, value: (Stored) throws -> Value?
  ) throws -> Search<Stored> {
    var first: Found<Stored>?
    var foundPlace = ""
    var problems: [SettingProblem] = []
    let own = try declaration == nil ? nil : declarationOfThisHost(key, transaction)
    let found = try find(key, stored: stored) {
      declaration?.defaultValue
    } isGood: { found, place in
      guard let declaration else { return true }
      let bad: SettingProblem?
      switch found {
      case .stored(let stored):
        bad = try value(stored).flatMap { try problem(key, of: $0, by: declaration, at: place, transaction) }
      // An administrator of this host speaks to its programs.
      case .locked(let value, _), .managed(let value, _), .declared(let value):
        bad = try problem(key, of: value, by: own?.declaration ?? declaration, at: place, transaction)
      }
      foundPlace = place
      guard let bad else { return true }
      first = first ?? found
      problems.append(bad)
      return false
    }
    if let own, let found {
      // What holds in the fleet is shown, though a program of this host does not read it.
      switch found {
      case .stored(let stored):
        let place = "\(foundPlace), as \(own.owner) declares it on this host"
        problems +=
          try value(stored).flatMap {
            try problem(key, of: $0, by: own.declaration, at: place, transaction)
          }.map { [$0] } ?? []
      case .declared(let given): problems += own.problem(ofDefault: given, collection, key).map { [$0] } ?? []
      case .locked, .managed: break
      }
    }
    return Search(found: found ?? first, problems: problems, isBad: found == nil && first != nil)
  }

  private func problem(
    _ key: String, of given: Value, by declaration: Declaration, at place: String,
    _ transaction: borrowing some Reading & ~Copyable
  ) throws -> SettingProblem? {
    guard declaration.problem(of: given) != nil else { return nil }
    let isHidden =
      try transaction.isDeclaredSecret(key, inCollection: collection) || transaction.isSealed(collection: collection)
    return SettingProblem(
      collection: collection, key: key, place: place,
      reason: declaration.problem(of: given, showsValue: !isHidden) ?? "", value: given)
  }

  /// What a program of this host declares while a fleet's declaration holds that differs from it: one of the application that the tool
  /// names, if that declares the setting.
  private func declarationOfThisHost(
    _ key: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> DeclaredSetting? {
    try transaction.overruledDeclaration(
      forKey: key, inCollection: collection, for: ownKeys.contains(ByteString(key)) ? applications.first : nil)
  }

  /// The item in force.
  package func item(
    _ key: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Search<Item> {
    let declaration =
      hasDeclarations ? try transaction.declaration(forKey: key, inCollection: collection) : nil
    return try search(key, by: declaration, transaction) {
      try transaction.item(forKey: key, inCollection: $0)
    } value: {
      $0.value
    }
  }

  /// What can be known of the value in force without opening sealed ones.
  ///
  /// - Parameters:
  ///   - declaration: The declaration of the setting.
  ///   - stored: Returns what a collection has; by default, it is looked up.
  package func info(
    _ key: String, by declaration: Declaration?, _ transaction: borrowing some Reading & ~Copyable,
    stored: ((_ collection: String) -> ItemInfo?)? = nil
  ) throws -> Search<ItemInfo> {
    try search(key, by: declaration, transaction) { name in
      try stored?(name) ?? transaction.info(forKey: key, inCollection: name)
    } value: { info in
      info.kind == .sealed ? nil : try transaction.value(forKey: key, inCollection: info.collection)
    }
  }

  /// The sentences that say what stays in force of removed keys, or is in force instead of values that are stored.
  ///
  /// A locked value that programs skip is not in force.
  ///
  /// - Parameter isExport: Whether the values were only read.
  package func notesOfLocks(
    _ keys: [String], _ transaction: borrowing some Reading & ~Copyable, isExport: Bool = false
  ) throws -> [String] {
    try keys.compactMap { key in
      guard locked(key) != nil else { return nil }
      let search = try item(key, transaction)
      guard !search.isBad, case .locked(_, let place)? = search.found else { return nil }
      let name = KeyText.of(key, in: collection)
      return isExport
        ? "programs have the value of \(name) that \(place) locks, not the stored one."
        : "\(name) keeps the value that \(place) locks."
    }
  }

  /// The keys of all settings of the collection: stored, an administrator's, or declared, each once in this order.
  package func keys(
    _ declared: DeclaredKeys, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [String] {
    var keys: [String] = []
    for name in shown { keys += try transaction.allKeys(inCollection: name) }
    keys += managedKeys + declared.settings(in: collection).map(\.declaration.name)
    var seen: Set<ByteString> = []
    return keys.filter { seen.insert(ByteString($0)).inserted }
  }

  /// Finds the names in the files that are of other collections: a name with slashes is a key of this one only if it is stored
  /// or declared here.
  mutating func findOtherNames(_ transaction: borrowing some Reading & ~Copyable) throws {
    for file in allFiles where !file.isEmpty {
      for key in file.keys(in: collection) where key.utf8.contains(UInt8(ascii: "/")) {
        var isKey = try transaction.declaration(forKey: key, inCollection: collection) != nil
        for name in shown where !isKey { isKey = try transaction.version(forKey: key, inCollection: name) > 0 }
        if !isKey { otherNames.insert(ByteString(key)) }
      }
    }
  }
}

extension DeclaredSetting {
  /// Says that this has another default than the one that a fleet declares.
  fileprivate func problem(ofDefault given: Value, _ collection: String, _ key: String) -> SettingProblem? {
    guard let own = declaration.defaultValue, own != given else { return nil }
    return SettingProblem(
      collection: collection, key: key, place: "the fleet's declaration, for \(owner) on this host",
      reason: "\(own.shortText) by default, not \(given.shortText)", value: given)
  }
}

extension Reading where Self: ~Copyable {
  /// What is in force in a collection, by the files of the application that a tool names, or else that the collection is named
  /// after, and of those that declare settings there.
  ///
  /// - Parameter parent: The collection whose values show where the environment has none.
  /// - Throws: `CofferError.malformedSettings`, `.permissionDenied` or `.inputOutput` where an administrator's files cannot be read.
  package borrowing func effectiveSettings(
    of collection: String, parent: String? = nil
  ) throws -> EffectiveSettings {
    let session = session
    let files = session.settingRules?.files ?? AdministratorFiles()
    var settings = try session.reading { try session.effectiveSettings(of: collection, parent: parent, files) }
    try settings.findOtherNames(self)
    return settings
  }

  /// The same; nil if an administrator's file cannot be read.
  ///
  /// - Throws: What is wrong with the store.
  package borrowing func effectiveSettingsIfReadable(of collection: String) throws -> EffectiveSettings? {
    do {
      return try effectiveSettings(of: collection)
    } catch let error as CofferError {
      switch error {
      case .malformedSettings: return nil
      case .permissionDenied(let path, _), .inputOutput(let path, _):
        if session.connection.store.map({ path.hasPrefix($0.path) }) ?? false { throw error }
        return nil
      default: throw error
      }
    }
  }
}

extension Reading where Self: ~Copyable {
  /// The applications that have declared settings in the store and none in a collection now, and the keys for which their files do
  /// not count there: those that are declared.
  package borrowing func formerApplications(
    of settings: EffectiveSettings
  ) throws -> (applications: [String], declaredKeys: Set<ByteString>) {
    let session = session
    return try session.reading {
      let former = settings.former(of: try session.declarations.knownApplications())
      return (former, try former.isEmpty ? [] : session.declarations.keys(in: settings.collection))
    }
  }
}

extension Session {
  /// What is in force in a collection; names with slashes are taken for keys of it.
  func effectiveSettings(
    of collection: String, parent: String? = nil, _ files: AdministratorFiles
  ) throws -> EffectiveSettings {
    let declaring = try declarations.applications(in: collection)
    var ownKeys: Set<ByteString> = []
    let own = CollectionEnvironment(collection: collection)?.parent ?? collection
    if let application = files.application,
      (declaring + [own]).contains(where: { ByteString($0) != ByteString(application) })
    {
      ownKeys = try declarations.keys(declaredBy: application, in: collection)
    }
    var settings = try EffectiveSettings(
      collection, parent, files, declaring: declaring, ownKeys: ownKeys)
    try settings.addFormer(declarations.knownApplications(), files) { try declarations.keys(in: collection) }
    return settings
  }
}
