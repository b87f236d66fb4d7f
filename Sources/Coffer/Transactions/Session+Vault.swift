import CofferCrypto
import CofferStorage

extension Session {
  // MARK: The table

  /// The store's vault, as of the current transaction.
  package func vaultRecord() throws -> VaultRecord? { try vaultTable.record() }

  func hasVault() throws -> Bool { try vaultTable.hasRecord() }

  /// Replaces the vault's record.
  func setVault(_ record: VaultRecord) throws {
    try changing {
      try vaultTable.set(record)
      transaction.vaultGeneration = nil
      transaction.changesDeclarations = true
    }
  }

  /// Notes whether the store has a vault by now.
  package func lookForVault() throws {
    guard !core.vault.isThere.load(ordering: .relaxed) else { return }
    if try CofferError.translating({ try vaultTable.hasRecord() }) {
      core.vault.isThere.store(true, ordering: .releasing)
    }
  }

  /// The number of the vault key that the values of this store are sealed under.
  private func storedGeneration() throws -> UInt32 {
    if let generation = transaction.vaultGeneration { return generation }
    guard let record = try vaultRecord() else {
      throw StorageError.damaged(part: "vault", reason: "a collection is sealed, but there is no vault")
    }
    try checkRemembered(record)
    transaction.vaultGeneration = record.generation
    return record.generation
  }

  /// Throws if the record outside of the store, as it was before this transaction, remembers a later key of the vault than
  /// that of `record`.
  func checkRemembered(_ record: VaultRecord) throws {
    try core.vault.check(record, rememberedAs: core.witness?.vouchedVault)
  }

  /// The vault's key, to change `record` with.
  ///
  /// - Throws: As `VaultKeys.key(authenticating:)`; `CofferError.vaultKeyUnverified`.
  func vaultKey(authenticating record: VaultRecord) throws -> SecretBytes {
    let key = try core.vault.key(authenticating: record)
    try checkRemembered(record)
    return key
  }

  /// Whether this program has the key that the values of this store are sealed under.
  func hasVaultKey() throws -> Bool {
    try followVault()
    guard let record = try vaultRecord(), let current = core.vault.current else { return false }
    return current.vaultID == record.id && current.generation == record.generation
  }

  private func rememberedVault() -> VaultMemory? {
    connection.store.flatMap { core.witness?.rememberedVault($0) }
  }

  /// Reads the vault's new key, if another process has replaced it.
  package func followVault() throws {
    guard let mac = try vaultTable.mac(), !core.vault.knows(mac: mac), let record = try vaultRecord() else { return }
    try core.vault.follow(record, remembered: rememberedVault)
  }

  // MARK: Values

  /// An item in the form in which its collection stores it: sealed in a sealed collection, plaintext in all others.
  ///
  /// - Parameter present: The stored item: an equal value stays as it is.
  @inline(__always)
  func fitted(
    _ item: HeldItem, _ key: String, in collection: String, _ stored: StoredCollection, present: HeldItem?
  ) throws -> HeldItem {
    guard stored.isSealed || item.isSealed else { return item }
    return HeldItem(
      object: HeldValue(
        try fitted(item.object.stored, .object, key, in: collection, stored, present: present?.object.stored)),
      metadata: try item.metadata.map {
        try fitted($0, .metadata, key, in: collection, stored, present: present?.metadata)
      },
      dates: item.dates)
  }

  /// The same for one value of an item.
  func fitted(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String, _ stored: StoredCollection,
    present: StoredValue?
  ) throws -> StoredValue {
    guard stored.isSealed || value.kind == .sealed else { return value }
    return try fittedBySealing(value, part, key, in: collection, stored, present: present)
  }

  private func fittedBySealing(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String, _ stored: StoredCollection,
    present: StoredValue?
  ) throws -> StoredValue {
    transaction.sealedChanges.insert(ByteString(collection))
    // It was set while the collection was sealed.
    guard stored.isSealed else { return try core.vault.open(value, part, key, in: collection) }
    return try core.vault.seal(
      value, part, key, in: collection, under: storedGeneration(), keeping: present)
  }

  // MARK: Declarations

  /// Throws if a collection's row disagrees with the vault's own list: someone without the vault's key has removed the seal,
  /// or added one.
  ///
  /// - Throws: `CofferError.damaged`; `.vaultLocked`, see `VaultKeys.lists`. Does not throw while the vault is locked.
  func checkDeclaration(of name: String, isSealed: Bool) throws {
    guard core.vault.isUnlocked else { return }
    guard let mac = try vaultTable.mac() else {
      throw CofferError.damaged(part: "vault", reason: "its authentication code is missing")
    }
    let isListed = try core.vault.lists(name, mac: mac, record: vaultRecord, remembered: rememberedVault)
    guard let isListed, isListed != isSealed else { return }
    throw WrongDeclaration(name: name, kind: isListed ? .onlyListed : .onlyDeclared).error
  }

  /// Throws if a collection that is not sealed is an environment of a sealed one: sealing that seals it, and so does creating it
  /// later, so someone without the vault's key has made it.
  func checkParent(of name: String) throws {
    guard let parent = CollectionEnvironment(collection: name)?.parent, try storedCollection(parent)?.isSealed ?? false
    else { return }
    throw WrongDeclaration(name: name, kind: .ofSealedParent).error
  }

  /// Does the same for all collections at once.
  func checkDeclarations(by record: VaultRecord) throws {
    if let declaration = try wrongDeclarations(by: record).first { throw declaration.error }
  }

  /// The collections whose rows disagree with the vault's list, which is not authenticated here.
  package func wrongDeclarations(by record: VaultRecord?) throws -> [WrongDeclaration] {
    let listed = Set(record?.sealedCollections.map { ByteString($0) } ?? [])
    let declared = Set(try sealedCollections().map { ByteString($0) })
    let contradictory = listed.symmetricDifference(declared).sorted().map {
      WrongDeclaration(name: $0.string, kind: listed.contains($0) ? .onlyListed : .onlyDeclared)
    }
    let sealed = listed.union(declared)
    let planted = try collections.names().values.filter { name in
      guard !sealed.contains(ByteString(name)), let parent = CollectionEnvironment(collection: name)?.parent else {
        return false
      }
      return sealed.contains(ByteString(parent))
    }
    return contradictory + planted.sorted().map { WrongDeclaration(name: $0, kind: .ofSealedParent) }
  }

  /// A collection whose row, the vault's list, and its parent's disagree on whether it is sealed.
  package struct WrongDeclaration {
    enum Kind { case onlyListed, onlyDeclared, ofSealedParent }

    let name: String
    let kind: Kind

    package var part: String { "declaration of \"\(name)\"" }

    package var reason: String {
      switch kind {
      case .onlyListed:
        "the vault lists the collection as sealed, but its row does not; seal it again to repair this"
      case .onlyDeclared:
        "its row marks the collection as sealed, but the vault does not list it; seal or unseal it to repair this"
      case .ofSealedParent:
        "it is an environment of a sealed collection, and not sealed itself; seal that collection again to repair this"
      }
    }

    var error: CofferError { .damaged(part: part, reason: reason) }
  }

  // MARK: Whole collections

  /// Seals or unseals a collection with all its environments: a secret in one is a secret in all of them.
  ///
  /// - Throws: `CofferError.unsupported` when an environment of a sealed collection is to be unsealed alone.
  func setSealed(_ isSealed: Bool, _ collection: String) throws {
    try changingTogether {
      if !isSealed, let parent = CollectionEnvironment(collection: collection)?.parent,
        try collections.collection(named: parent)?.isSealed ?? false
      {
        throw CofferError.unsupported(
          reason: "\(collection) is an environment of \(parent), which is sealed; unseal that, with its environments")
      }
      let environments = try collections.all().map(\.name).filter {
        CollectionEnvironment(collection: $0)?.parent.utf8.elementsEqual(collection.utf8) ?? false
      }
      for name in [collection] + environments where try setSealedAlone(isSealed, name) {
        note(isSealed ? .sealed(name) : .unsealed(name))
      }
    }
  }

  /// Marks a collection as sealed or not, in its row and in the vault's list, and seals or opens all its values.
  ///
  /// If the two disagreed, they agree afterwards.
  ///
  /// - Returns: Whether that changed anything.
  func setSealedAlone(_ isSealed: Bool, _ collection: String) throws -> Bool {
    try changingTogether {
      guard var record = try vaultRecord() else { throw CofferError.vaultNotFound }
      let key = try vaultKey(authenticating: record)
      let present = try collections.collection(named: collection)
      let (isDeclared, isListed) = (present?.isSealed ?? false, record.lists(collection))
      guard isDeclared != isSealed || isListed != isSealed else { return false }
      let wasSealed = isDeclared && isListed
      if isListed != isSealed {
        try record.setSealed(isSealed, collection, key: key)
        try setVault(record)
      }
      var stored = try present ?? insertRow(collection)
      stored.isSealed = isSealed
      try collections.setSealed(isSealed, stored.id)
      knownCollections[collection] = stored
      if isSealed, !wasSealed {
        // Earlier values were kept as plaintext.
        try setHistoryLimits(nil, of: collection)
        try eraseHistory(of: collection)
      }
      // If the two disagreed, the row was tampered with, and values may be sealed or plaintext.
      try rewriteValues(of: collection, stored.id, isSealed: wasSealed ? true : nil) { value, part, key in
        isSealed
          ? try core.vault.seal(value, part, key, in: collection, under: record.generation)
          : try core.vault.open(value, part, key, in: collection)
      }
      transaction.changes.recordDeclaration(of: stored.id)
      if transaction.isFeedObserved { transaction.changedNames[stored.id] = collection }
      return true
    }
  }

  /// Takes a sealed collection, whose row is about to go, off the vault's list.
  func unlist(_ collection: String, _ stored: StoredCollection) throws {
    try changing {
      guard var record = try vaultRecord() else { throw CofferError.vaultNotFound }
      let key = try vaultKey(authenticating: record)
      guard record.lists(collection) else { return }
      try record.setSealed(false, collection, key: key)
      try setVault(record)
      transaction.changes.recordDeclaration(of: stored.id)
      if transaction.isFeedObserved { transaction.changedNames[stored.id] = collection }
    }
  }

  /// Opens every sealed value, and seals it under another of the vault's keys.
  func sealAgain(under generation: UInt32, _ progress: (Double) throws -> Void) throws {
    try changing {
      let names = try sealedCollections()
      let total = try names.reduce(0) { try $0 + count(in: $1) }
      var doneCount = 0
      for name in names {
        guard let id = try collectionID(name) else { continue }
        try rewriteValues(of: name, id, isSealed: true) { value, part, key in
          if part == .object {
            doneCount += 1
            if doneCount % 256 == 0 { try progress(min(1, Double(doneCount) / Double(max(total, 1)))) }
          }
          return try core.vault.seal(value, part, key, in: name, under: generation)
        }
      }
      try progress(1)
    }
  }

  /// Replaces the bytes of every value of a collection, including earlier ones; their versions stay.
  ///
  /// - Parameter isSealed: Whether they are sealed before, as in `item(_:isSealed:)`.
  private func rewriteValues(
    of collection: String, _ id: Int64, isSealed: Bool?,
    _ body: (StoredValue, ItemPart, _ key: String) throws -> StoredValue
  ) throws {
    func rewritten(_ item: HeldItem, _ key: String) throws -> HeldItem {
      HeldItem(
        object: HeldValue(try body(item.object.stored, .object, key)),
        metadata: try item.metadata.map { try body($0, .metadata, key) }, dates: item.dates)
    }
    let isObserved = observes(.updated, in: collection)
    var rest: KeyRange? = .all
    while let range = rest {
      // In groups: while a cursor is open, its rows must not change.
      let found = try items.items(in: id, isSealed: isSealed, range, atMost: 256)
      for (key, old) in found {
        let new = try rewritten(old, key)
        try items.rewrite(new, key, in: id)
        record(
          .updated, key, in: collection, id: id, old: isObserved ? old : nil, new: isObserved ? new : nil)
      }
      rest = found.last.map { .behind($0.key) }
    }
    for key in try keysWithHistory(in: collection) {
      for row in try history.rows(key, in: id, isSealed: isSealed) {
        try history.rewrite(try rewritten(row.item, key), key, in: id, version: row.version)
      }
    }
  }

  // MARK: Reading

  func isSealed(_ collection: String) throws -> Bool {
    try reading { try isSealedOrWillBe(collection) }
  }

  /// The names of the sealed collections, including empty ones, in order.
  func sealedCollections() throws -> [String] {
    try reading { try collections.sealedNames() }
  }

  /// Makes sure that no overwritten data is left in the database file or the log.
  ///
  /// - Throws: `CofferError.busy` when an older snapshot, which is in the log, is being read for longer than the busy timeout.
  func clearTraces() throws {
    try vacuum()
    let deadline = ContinuousClock.now + core.options.busyTimeout
    while try !CofferError.translating({ try connection.checkpointAndTruncate {} }) {
      // SQLite waits for readers, and not for another checkpoint.
      guard ContinuousClock.now < deadline else { throw CofferError.busy }
      usleep(5000)
    }
  }
}
