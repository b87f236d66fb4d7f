#if COFFER_BUS
  import Coffer
  import CofferCrypto

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  /// A collection of the store.
  ///
  /// What is in memory of its items is what is in the keys, which the vault does not protect.
  final class StoredCollection: ServedCollection {
    private struct Entry {
      let name: ItemName
      let version: CommitNumber
      let modified: Date
    }

    let id: String
    /// Its name in the store.
    let name: String
    var label: String
    var created: Date
    private unowned let store: ServiceStore
    private var isSealed = false
    private var index = ItemIndex<Entry> { $0.name.attributes }
    private var entries: [String: Entry] { index.entries }

    init(_ id: String, name: String, label: String, created: Date, _ store: ServiceStore) {
      (self.id, self.name, self.label, self.created, self.store) = (id, name, label, created, store)
    }

    // MARK: - Reading

    /// One that is yet to be sealed is locked, too, so that clients have the vault unlocked before the first item.
    var isLocked: Bool { (isSealed || entries.isEmpty && store.hasVault) && !store.isUnlocked }

    var modified: Date { entries.values.map(\.modified).max() ?? created }

    var elements: [String] { sorted(entries) }

    private func sorted(_ entries: [String: Entry]) -> [String] {
      entries.sorted { ($0.value.version, $0.key) < ($1.value.version, $1.key) }.map(\.key)
    }

    func attributes(of element: String) -> ItemAttributes? { entries[element]?.name.attributes }

    func search(_ attributes: ItemAttributes) -> [String] {
      sorted(index.search(attributes))
    }

    private func entry(_ element: String) throws -> Entry {
      guard let entry = entries[element] else { throw BusFailure.noObject("\(id)/\(element)") }
      return entry
    }

    private func item(_ element: String) throws -> KeyringItem {
      let key = try entry(element).name.key
      let item = try store.read { try $0.item(forKey: key, inCollection: name) }
      guard let item else { throw BusFailure.noObject("\(id)/\(element)") }
      return try KeyringItem(item)
    }

    func details(of element: String) throws -> (details: ItemDetails, modified: Date) {
      guard isLocked else {
        let item = try item(element)
        return (item.details, item.modified)
      }
      let entry = try entry(element)
      return (ItemDetails(nil, of: entry.name, modified: entry.modified), entry.modified)
    }

    func secret(of element: String) throws -> (bytes: SecretBytes, type: String) {
      let item = try item(element)
      store.noteUse()
      return (item.secret, item.details.type)
    }

    // MARK: - Changing

    func setLabel(_ label: String) throws { try store.setLabel(label, of: self) }

    func create(_ item: ItemChange, replaces: Bool) throws -> String {
      try requireUnlocked()
      try sealFirst()
      let attributes = item.attributes ?? ItemAttributes([:])
      let (secret, type) = item.secret ?? (SecretBytes(count: 0) { _ in }, ItemDetails.text)
      let made = try store.write { transaction in
        let same = replaces ? try newest(with: attributes, transaction) : nil
        let made = try same ?? ItemName(attributes)
        try Keyring.put(secret, made, label: item.label ?? "", type: type, name, transaction)
        return made
      }
      store.noteUse()
      return try Self.element(of: made)
    }

    /// The newest item with exactly these attributes.
    private func newest(
      with attributes: ItemAttributes, _ transaction: borrowing ReadWriteTransaction
    ) throws -> ItemName? {
      // Another program may have written since the index was brought up to date.
      let names =
        try store.isUpToDate(transaction)
        ? sorted(index.search(attributes)).reversed().compactMap { entries[$0]?.name }
        : Keyring.names(attributes, name, transaction)
      return names.first { $0.id != nil && $0.attributes == attributes }
    }

    func change(_ element: String, _ change: ItemChange) throws {
      try requireUnlocked()
      let (key, id) = (try entry(element).name.key, try entry(element).name.id)
      try store.write { transaction in
        guard let stored = try transaction.item(forKey: key, inCollection: name) else {
          throw BusFailure.noObject("\(self.id)/\(element)")
        }
        var item = try KeyringItem(stored)
        if let label = change.label { item.details.label = label }
        let secret = change.secret?.bytes ?? item.secret
        let type = change.secret?.type ?? item.details.type
        var made = item.name
        if let attributes = change.attributes {
          // An item of `prefs set` gets a key of ours with its first attributes.
          made = try id.map { try ItemName(attributes, id: $0) } ?? ItemName(attributes)
        }
        if !made.key.utf8.elementsEqual(key.utf8) {
          try transaction.moveObject(forKey: key, inCollection: name, toKey: made.key, inCollection: name)
        }
        try Keyring.put(secret, made, label: item.details.label, type: type, name, transaction)
      }
      if change.secret != nil { store.noteUse() }
    }

    func remove(_ element: String) throws {
      try requireUnlocked()
      let key = try entry(element).name.key
      try store.write { try $0.removeObject(forKey: key, inCollection: name) }
    }

    private func requireUnlocked() throws {
      if isLocked { throw CofferError.vaultLocked(collection: name) }
    }

    func sealFirst() throws {
      guard !isSealed, entries.isEmpty, store.hasVault else { return }
      try store.database.seal(collection: name)
      isSealed = true
    }

    // MARK: - Following the store

    /// Reads all keys.
    func reload(_ transaction: borrowing ReadTransaction) throws -> [ServiceEvent] {
      isSealed = try transaction.isSealed(collection: name)
      let former = entries
      index.removeAll()
      for info in try transaction.itemInfos(inCollection: name) {
        let entry = Entry(name: ItemName(key: info.key), version: info.version, modified: info.modified)
        index[try Self.element(of: entry.name)] = entry
      }
      return events(from: former, Set(former.keys).union(entries.keys))
    }

    /// Reads some keys.
    func reload(_ keys: Set<ByteString>, _ transaction: borrowing ReadTransaction) throws -> [ServiceEvent] {
      isSealed = try transaction.isSealed(collection: name)
      var former: [String: Entry] = [:]
      var found: [String: Entry] = [:]
      for key in keys {
        let name = ItemName(key: key.string)
        let element = try Self.element(of: name)
        former[element] = entries[element]
        // With new attributes an item has a new key, and the same ID.
        if let info = try transaction.info(forKey: key.string, inCollection: self.name) {
          found[element] = Entry(name: name, version: info.version, modified: info.modified)
        }
      }
      for (element, entry) in former where found[element] == nil && keys.contains(ByteString(entry.name.key)) {
        index[element] = nil
      }
      for (element, entry) in found { index[element] = entry }
      return events(from: former, Set(former.keys).union(found.keys))
    }

    private func events(from former: [String: Entry], _ elements: Set<String>) -> [ServiceEvent] {
      elements.sorted().compactMap { element in
        switch (former[element], entries[element]) {
        case (nil, nil): nil
        case (nil, _): .itemCreated(id, element)
        case (_, nil): .itemDeleted(id, element)
        case (let before?, let now?): before.version == now.version ? nil : .itemChanged(id, element)
        }
      }
    }

    /// The last part of the path of an item: its ID, or for a key of another form a hash of it.
    static func element(of name: ItemName) throws -> String {
      if let id = name.id { return id }
      let digest = try Array(name.key.utf8).withUnsafeBytes { try SHA256.digest($0) }
      return "k" + HexText.text(digest.prefix(16))
    }
  }
#endif
