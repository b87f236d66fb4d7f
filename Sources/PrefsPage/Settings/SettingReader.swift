import Coffer
import PrefsCommands

/// Makes entries of the list from a store: what is stored, what is declared, and what an administrator gives.
struct SettingReader: Sendable {
  let declared: DeclaredKeys
  private var managed: [ByteString: ManagedSettings] = [:]
  private var sealed: Set<ByteString>

  /// Longer texts are searched up to here.
  private static let searchedByteCount = 64 << 10

  init(_ transaction: borrowing ReadTransaction) throws {
    declared = try DeclaredKeys(transaction)
    sealed = Set(try transaction.sealedCollections().map { ByteString($0) })
  }

  func isSealed(_ collection: String) -> Bool { sealed.contains(ByteString(collection)) }

  /// What an administrator gives a collection, as it was when the collection was looked at first.
  func managed(_ collection: String) -> ManagedSettings? { managed[ByteString(collection)] }

  /// Looks at what is not in a commit's list of keys: whether the collection is sealed.
  mutating func follow(_ collection: String, _ transaction: borrowing ReadTransaction) throws {
    if try transaction.isSealed(collection: collection) {
      sealed.insert(ByteString(collection))
    } else {
      sealed.remove(ByteString(collection))
    }
    try lookAtManaged(collection)
  }

  private mutating func lookAtManaged(_ collection: String) throws {
    guard managed[ByteString(collection)] == nil else { return }
    let settings = try ManagedSettings(ofApplication: collection)
    managed[ByteString(collection)] = settings
  }

  // MARK: - Entries

  /// All entries of a collection, in no order.
  mutating func settings(
    of collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> [IndexedSetting] {
    try lookAtManaged(collection)
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
    let others = declared.settings(in: collection).map(\.declaration.name) + (managed(collection)?.allKeys ?? [])
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
    let isGiven = managed(collection).map { $0.locked(forKey: key) != nil || $0.defaultValue(forKey: key) != nil }
    guard info != nil || isGiven ?? false || declared.setting(key, in: collection) != nil else { return nil }
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
    var text = KeyReference.text(key, in: collection) + "\n" + (declaration?.summary ?? "") + "\n"
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

extension Value.Kind {
  /// Whether values of this kind are searched: everything that is read as text, but no bytes and no secrets.
  fileprivate var isSearched: Bool {
    switch self {
    case .data, .secret, .sealed, .null: false
    default: true
    }
  }
}
