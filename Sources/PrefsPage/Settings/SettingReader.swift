import Coffer
import PrefsCommands

/// Reads entries of the list from a store: stored, declared, and administrators' settings.
struct SettingReader: Sendable {
  let declared: DeclaredKeys
  /// The environments of the store.
  let environments: [CollectionEnvironment]
  /// What is in force in the collections that were read.
  private(set) var effective: [ByteString: EffectiveSettings] = [:]
  /// The collections that are columns beside one another.
  private(set) var families: [CollectionFamily] = []
  private var sealed: Set<ByteString>
  /// The lower-case text of who last changed a setting, with the number of the commit, as far as the change log knows.
  ///
  /// All settings of a commit share one text.
  private var authors: [SettingPlace: (commit: CommitNumber, text: [UInt8])] = [:]

  /// How far longer texts are searched.
  private static let searchedByteCount = 64 << 10

  init(_ transaction: borrowing ReadTransaction) throws {
    declared = try DeclaredKeys(transaction)
    environments = try transaction.environments()
    sealed = Set(try transaction.sealedCollections().map { ByteString($0) })
    for commit in try transaction.rememberedCommits() { noteAuthor(of: commit) }
  }

  /// Takes over who made a commit.
  mutating func noteAuthor(of commit: Commit) {
    guard let author = commit.author else { return }
    let text = Array(author.description.lowercased().utf8)
    for collection in commit.changedCollections {
      for key in commit.changedKeys(inCollection: collection) {
        authors[SettingPlace(key, in: collection)] = (commit.number, text)
      }
    }
  }

  /// The collections that were read, sorted.
  var collections: [ByteString] { effective.keys.sorted() }

  mutating func findFamilies(in scope: CollectionScope) { families = allFamilies(in: scope) }

  /// The keys of a collection for which administrators give something.
  func managedKeys(of collection: String) -> [String] { effective[ByteString(collection)]?.managedKeys ?? [] }

  func isSealed(_ collection: String) -> Bool { sealed.contains(ByteString(collection)) }

  /// Reads what a commit's list of keys does not show: whether the collection is sealed.
  mutating func follow(_ collection: String, _ transaction: borrowing ReadTransaction) throws {
    if try transaction.isSealed(collection: collection) {
      sealed.insert(ByteString(collection))
    } else {
      sealed.remove(ByteString(collection))
    }
    _ = try known(collection, transaction)
  }

  /// The collections that show values of `collection`: itself and its environments.
  func showing(_ collection: String) -> [String] {
    [collection] + environments.filter { $0.parent.utf8.elementsEqual(collection.utf8) }.map(\.collection)
  }

  private mutating func known(
    _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> EffectiveSettings {
    let settings = try effective[ByteString(collection)] ?? transaction.effectiveSettings(in: collection)
    effective[ByteString(collection)] = settings
    return settings
  }

  /// The values in force in a collection, with administrators' files as they were when it was first read.
  func effectiveSettings(
    in collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> EffectiveSettings {
    try effective[ByteString(collection)] ?? transaction.effectiveSettings(in: collection)
  }

  // MARK: - Entries

  /// The item of a key in a collection, or, in an environment, else in its parent.
  private struct Stored {
    let info: ItemInfo
    /// nil if it is sealed.
    let value: Value?
    /// The index of its collection among the visible ones.
    let place: Int
  }

  /// All entries of a collection, by key.
  ///
  /// - Parameter parent: Those of the collection that it is an environment of; nil to read them from the store.
  mutating func settings(
    of collection: String, inheriting parent: [IndexedSetting]?, _ transaction: borrowing ReadTransaction
  ) throws -> [IndexedSetting] {
    let known = try known(collection, transaction)
    let own = declared.settings(in: collection)
    // One that was not made is a collection with such a name.
    let isEnvironment = known.shown.count > 1
    let inherits =
      parent != nil && isEnvironment
      && !own.contains { ByteString($0.declaration.collection) == ByteString(collection) }
    let text = Self.text(ofCollection: collection)
    var seen: Set<ByteString> = []
    var settings: [IndexedSetting] = []
    for (place, name) in known.shown.enumerated() where place == 0 || !inherits {
      var values: [ByteString: Value] = [:]
      if !isSealed(name) {
        try transaction.enumerateKeysAndObjects(inCollection: name, as: Value.self) { key, value, _ in
          values[ByteString(key)] = value
        }
      }
      for info in try transaction.itemInfos(inCollection: name) {
        let key = ByteString(info.key)
        guard seen.insert(key).inserted else { continue }
        let stored = Stored(info: info, value: values[key], place: place)
        settings.append(try entry(info.key, collection, stored, known, text, hasDeclarations: !own.isEmpty))
      }
    }
    if inherits {
      settings.reserveCapacity(settings.count + (parent?.count ?? 0))
      for setting in parent ?? [] where seen.insert(ByteString(setting.key)).inserted {
        settings.append(setting.inherited(by: collection, text))
      }
    }
    let others = own.map(\.declaration.name) + known.managedKeys
    for key in others where seen.insert(ByteString(key)).inserted {
      settings.append(try entry(key, collection, nil, known, text, hasDeclarations: !own.isEmpty))
    }
    settings.sort { ByteString($0.key) < ByteString($1.key) }
    return settings
  }

  private static func text(ofCollection collection: String) -> [UInt8] {
    collection.isEmpty ? [] : Array("\(collection.lowercased())/".utf8)
  }

  /// The entry of a key; nil if there is nothing to show.
  func setting(
    _ key: String, _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> IndexedSetting? {
    let known = try effectiveSettings(in: collection, transaction)
    var stored: Stored?
    for (place, name) in known.shown.enumerated() where stored == nil {
      guard let info = try transaction.info(forKey: key, inCollection: name) else { continue }
      let value = isSealed(name) ? nil : try transaction.value(forKey: key, inCollection: name)
      stored = Stored(info: info, value: value, place: place)
    }
    let isGiven = known.locked(key) != nil || known.managedDefault(key) != nil
    guard stored != nil || isGiven || declared.setting(key, in: collection) != nil else { return nil }
    let hasDeclarations = !declared.settings(in: collection).isEmpty
    return try entry(
      key, collection, stored, known, Self.text(ofCollection: collection), hasDeclarations: hasDeclarations)
  }

  private func entry(
    _ key: String, _ collection: String, _ stored: Stored?, _ known: EffectiveSettings, _ collectionText: [UInt8],
    hasDeclarations: Bool
  ) throws -> IndexedSetting {
    let setting = declared.setting(key, in: collection)
    let declaration = setting?.declaration
    var place = 0
    // A search finds bad values, too.
    let found = try known.find(key) { _ in
      defer { place += 1 }
      return stored?.place == place ? stored : nil
    } declared: {
      declaration?.defaultValue
    } isGood: { _, _ in
      true
    }
    let shown: Value?
    var sealedIn: ByteString?
    var type = declaration?.type.description
    switch found {
    case .stored(let stored)?:
      (shown, type) = (stored.value, stored.info.kind.name)
      if stored.value == nil { sealedIn = ByteString(stored.info.collection) }
    case .locked(let value, _)?, .managed(let value, _)?: (shown, type) = (value, value.kind.name)
    case .declared(let value)?: shown = value
    case nil: shown = nil
    }
    // Programs skip a bad value for another one, and may have a declaration of their own.
    let isCertain =
      setting.map { setting in
        setting.overruled == nil && (shown.map { setting.declaration.problem(of: $0) == nil } ?? true)
      } ?? true
    let isSecret = declared.isSecret(key, in: collection) || isSealed(collection)
    var text = (collection.isEmpty ? KeyText.of(key, in: collection) : key) + "\n"
    if let declaration { text += "\(declaration.summary)\n" }
    if let shown, !isSecret, shown.kind.isSearched { text += ValueText.text(shown).prefix(Self.searchedByteCount) }
    let own = stored?.place == 0 ? stored : nil
    let last = authors[SettingPlace(key, in: collection)]
    let author = last.flatMap { $0.commit == own?.info.version ? $0.text : nil }
    let hasProblem =
      own != nil && hasDeclarations
      ? !SettingFinding.all(of: key, in: collection, declared, isSealed: true, suggestsNames: false) { own?.value }
        .isEmpty
      : false
    return IndexedSetting(
      own: own.map {
        IndexedSetting.Stored(modified: $0.info.modified, due: $0.info.due, expires: $0.info.expires != nil)
      },
      isChanged: own != nil && (own?.value == nil || own?.value != declaration?.defaultValue), hasProblem: hasProblem,
      isLocked: known.locked(key) != nil, collection: collection, key: key,
      type: isSealed(collection) ? Value.Kind.sealed.name : isSecret ? Value.Kind.secret.name : type ?? "any",
      collectionText: collectionText, searchText: Array(text.lowercased().utf8), authorText: author ?? [],
      value: ValueMark(ComparedValue(value: shown, sealedIn: sealedIn), isCertain: isCertain))
  }
}

extension Reading where Self: ~Copyable {
  /// The values in force in a collection of the page, which shows environments beside their collections.
  borrowing func effectiveSettings(in collection: String) throws -> EffectiveSettings {
    try effectiveSettings(of: collection, parent: shown(collection).dropFirst().first)
  }
}

extension Value.Kind {
  /// Whether values of this kind are searched: everything with a text except data and secrets.
  fileprivate var isSearched: Bool {
    switch self {
    case .data, .secret, .sealed, .null: false
    default: true
    }
  }
}
