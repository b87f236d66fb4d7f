import Coffer
import PrefsCommands

/// Makes entries of the list from a store: what is stored, what is declared, and what an administrator gives.
struct SettingReader: Sendable {
  let declared: DeclaredKeys
  private var effective: [ByteString: EffectiveSettings] = [:]
  private var sealed: Set<ByteString>

  /// Longer texts are searched up to here.
  private static let searchedByteCount = 64 << 10

  init(_ transaction: borrowing ReadTransaction) throws {
    declared = try DeclaredKeys(transaction)
    sealed = Set(try transaction.sealedCollections().map { ByteString($0) })
  }

  func isSealed(_ collection: String) -> Bool { sealed.contains(ByteString(collection)) }

  /// Looks at what is not in a commit's list of keys: whether the collection is sealed.
  mutating func follow(_ collection: String, _ transaction: borrowing ReadTransaction) throws {
    if try transaction.isSealed(collection: collection) {
      sealed.insert(ByteString(collection))
    } else {
      sealed.remove(ByteString(collection))
    }
    _ = try known(collection, transaction)
  }

  private mutating func known(
    _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> EffectiveSettings {
    let settings = try effective[ByteString(collection)] ?? transaction.effectiveSettings(in: collection)
    effective[ByteString(collection)] = settings
    return settings
  }

  /// What is in force in a collection, with an administrator's files as they were when it was looked at first.
  func effectiveSettings(
    in collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> EffectiveSettings {
    try effective[ByteString(collection)] ?? transaction.effectiveSettings(in: collection)
  }

  // MARK: - Entries

  /// All entries of a collection, in no order.
  mutating func settings(
    of collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> [IndexedSetting] {
    let known = try known(collection, transaction)
    let infos = try transaction.itemInfos(inCollection: collection)
    var values: [ByteString: Value] = [:]
    if !isSealed(collection) {
      try transaction.enumerateKeysAndObjects(inCollection: collection, as: Value.self) { key, value, _ in
        values[ByteString(key)] = value
      }
    }
    let hasDeclarations = !declared.settings(in: collection).isEmpty
    var seen = Set(infos.map { ByteString($0.key) })
    var settings = infos.map { info in
      entry(info.key, collection, info, values[ByteString(info.key)], hasDeclarations: hasDeclarations)
    }
    let others = declared.settings(in: collection).map(\.declaration.name) + known.managedKeys
    for key in others where seen.insert(ByteString(key)).inserted {
      settings.append(entry(key, collection, nil, nil, hasDeclarations: hasDeclarations))
    }
    return settings
  }

  /// The entry of a key; nil where there is nothing to show.
  func setting(
    _ key: String, _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> IndexedSetting? {
    let info = try transaction.info(forKey: key, inCollection: collection)
    let known = try effectiveSettings(in: collection, transaction)
    let isGiven = known.locked(key) != nil || known.managedDefault(key) != nil
    guard info != nil || isGiven || declared.setting(key, in: collection) != nil else { return nil }
    let value =
      isSealed(collection) || info == nil ? nil : try transaction.value(forKey: key, inCollection: collection)
    let hasDeclarations = !declared.settings(in: collection).isEmpty
    return entry(key, collection, info, value, hasDeclarations: hasDeclarations)
  }

  private func entry(
    _ key: String, _ collection: String, _ info: ItemInfo?, _ value: Value?, hasDeclarations: Bool
  ) -> IndexedSetting {
    let declaration = declared.setting(key, in: collection)?.declaration
    let shown = value ?? (info == nil ? declaration?.defaultValue : nil)
    let isSecret = declaration?.type == .secret || isSealed(collection)
    var text = KeyText.of(key, in: collection) + "\n" + (declaration?.summary ?? "") + "\n"
    if let shown, !isSecret, shown.kind.isSearched { text += ValueText.text(shown).prefix(Self.searchedByteCount) }
    let problem =
      info != nil && hasDeclarations
      ? !SettingFinding.all(of: key, in: collection, declared, isSealed: true, suggestsNames: false) { value }.isEmpty
      : false
    return IndexedSetting(
      collection: collection, key: key, info: info,
      isChanged: info != nil && (value == nil || value != declaration?.defaultValue),
      hasProblem: problem, searchText: Array(text.lowercased().utf8))
  }
}

extension Reading where Self: ~Copyable {
  /// What is in force in a collection of the page, which shows environments beside their collections.
  borrowing func effectiveSettings(in collection: String) throws -> EffectiveSettings {
    try effectiveSettings(of: collection, parent: shown(collection).dropFirst().first)
  }
}

extension Value.Kind {
  /// Whether values of this kind are searched: everything that is read as text, but no bytes and no secrets.
  fileprivate var isSearched: Bool {
    switch self {
    case .data, .secret, .sealed, .null: false
    default: true
    }
  }
}
