import CofferStorage

extension Vault {
  // MARK: Slots

  /// The slots of the vault: the secrets that unlock it.
  ///
  /// - Throws: `CofferError.vaultNotFound`.
  public func slots() throws -> [SlotInfo] {
    try existingRecord().slots.map(SlotInfo.init)
  }

  /// Adds a slot, so that another secret unlocks the vault.
  ///
  /// - Parameters:
  ///   - label: A name for people, at most 64 bytes.
  ///   - stretching: The cost of each guess at a passphrase.
  /// - Returns: The new slot.
  /// - Throws: `CofferError.vaultLocked` while the vault is locked, `.vaultNotFound`, `.secretInUse` when it opens a slot already,
  ///   `.slotsFull`, `.keyUnavailable`,
  ///   `.unsupported`; the errors of a write transaction. Nothing is changed then, here and with the methods below.
  @discardableResult
  public func addSlot(
    _ key: KeySource, label: String = "", stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    let secret = try prepared(key, label: label, stretching: stretching)
    return try change({ SlotInfo(try $0.addSlot(secret, key: $1)) }) { .vaultSlotAdded(UInt8(clamping: $0.id)) }
  }

  /// Adds a slot for a recovery key: a random key to write down, in case the others are lost.
  ///
  /// - Returns: The key, which is stored nowhere else.
  /// - Throws: As `addSlot(_:label:stretching:)`.
  public func addRecoveryKey(label: String = "") throws -> RecoveryKey {
    let key = try CofferError.translating { try RecoveryKey() }
    try addSlot(.recoveryKey(key.text), label: label)
    return key
  }

  /// Replaces a slot's secret; the ID stays.
  ///
  /// - Parameter label: The new label; nil keeps the current one.
  /// - Returns: The changed slot.
  /// - Throws: `CofferError.slotNotFound`; as `addSlot(_:label:stretching:)`.
  @discardableResult
  public func changeSlot(
    _ id: Int, to key: KeySource, label: String? = nil, stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    guard let slot = try slots().first(where: { $0.id == id }) else { throw CofferError.slotNotFound(id: id) }
    let slotID = UInt8(clamping: id)
    let secret = try prepared(key, label: label ?? slot.label, stretching: stretching, replacing: slotID)
    return try change({ SlotInfo(try $0.replaceSlot(slotID, with: secret, key: $1)) }) { _ in
      .vaultSlotReplaced(slotID)
    }
  }

  /// Changes a slot's label.
  ///
  /// - Throws: `CofferError.slotNotFound`; as `addSlot(_:label:stretching:)`.
  public func setLabel(_ label: String, forSlot id: Int) throws {
    let slot = try number(id)
    try change({ try $0.setLabel(label, ofSlot: slot, key: $1) }) { .vaultSlotLabelled(slot) }
  }

  /// Removes a slot.
  ///
  /// Its owner may have kept a copy of the store, or the vault's key; to replace that key, use
  /// `rotate(newKeyFor:droppingSlots:progress:)`.
  ///
  /// - Throws: `CofferError.slotNotFound`, `.lastSlot`; as `addSlot(_:label:stretching:)`.
  public func removeSlot(_ id: Int) throws {
    let slot = try number(id)
    try change({ try $0.removeSlot(slot, key: $1) }) { .vaultSlotRemoved(slot) }
  }

  private func number(_ id: Int) throws -> UInt8 {
    guard let number = UInt8(exactly: id) else { throw CofferError.slotNotFound(id: id) }
    return number
  }

  /// Does the slow work, before any lock is held.
  private func prepared(
    _ key: KeySource, label: String, stretching: PasswordHash, replacing slot: UInt8? = nil
  ) throws -> PreparedSecret {
    let record = try existingRecord()
    _ = try vaultKey()
    return try CofferError.translating {
      try PreparedSecret(
        key, stretching: .password(stretching), label: label, owner: record.id, comparedWith: record.slots,
        replacing: slot)
    }
  }

  /// The slot that `key` opens; nil if it opens none.
  package func slot(openedBy key: KeySource) throws -> SlotInfo? {
    let record = try existingRecord()
    return try CofferError.translating {
      try record.slots.slot(openedBy: key, owner: record.id).map(SlotInfo.init)
    }
  }

  /// Checks whether `rotate(newKeyFor:droppingSlots:progress:)` has the secrets that it needs; changes nothing.
  package func checkRotation(newKeyFor keys: [KeySource], droppingSlots dropped: Set<Int>) throws {
    let record = try existingRecord()
    let droppedSlots = try Set(dropped.map(number))
    try CofferError.translating { try record.checkSources(keys, dropping: droppedSlots) }
  }

  /// Changes the vault's slots, given its key.
  ///
  /// - Parameter action: What the log says about it.
  private func change<Result>(
    _ body: (inout VaultRecord, SecretBytes) throws -> Result, _ action: (Result) -> CommitAction
  ) throws -> Result {
    try database.write { session in
      guard var record = try session.vaultRecord() else { throw CofferError.vaultNotFound }
      let result = try body(&record, session.vaultKey(authenticating: record))
      try session.setVault(record)
      session.note(action(result))
      return result
    }
  }

  // MARK: A new key

  /// Gives the vault a new key, and seals all sealed values again, in one transaction.
  ///
  /// Afterwards, the earlier key or a dropped slot opens only older copies.
  ///
  /// ```swift
  /// try vault.rotate(newKeyFor: [.passphrase(mine), .recoveryKey(written)], droppingSlots: [2])
  /// ```
  ///
  /// - Parameters:
  ///   - keys: The secrets of all slots that stay: each gets the new key.
  ///   - dropped: The slots to remove.
  ///   - progress: Called with the fraction done, from 0 to 1; an error that it throws ends the rotation, and changes
  ///     nothing.
  /// - Throws: `CofferError.slotsNotOpened` when the secret of a slot that is not dropped is missing, `.wrongKey` when a
  ///   secret opens no slot, `.slotNotFound`, `.lastSlot`; `.vaultLocked` while the vault is locked, `.vaultNotFound`; `.damaged`
  ///   when a value cannot be opened; `.busy`, also when another process changes the slots meanwhile. Nothing is changed
  ///   then. As with `Database.seal(collection:)`, `.unfinished` when the store's files could not be cleared afterwards.
  public func rotate(
    newKeyFor keys: [KeySource], droppingSlots dropped: Set<Int> = [], progress: (Double) throws -> Void = { _ in }
  ) throws {
    let record = try existingRecord()
    // The new key's MAC will vouch for the slots and the list.
    let former = try self.keys.key(authenticating: record)
    let droppedSlots = try Set(dropped.map(number))
    let (newRecord, secret) = try CofferError.translating {
      try record.replacingKey(former, openedBy: keys, dropping: droppedSlots)
    }
    try database.checkRewritable()
    // Before the commit, so that no reader meets a value whose key is missing.
    try self.keys.prepare(secret, of: newRecord)
    do {
      try database.write { session in
        guard try session.vaultRecord() == record else { throw CofferError.busy }
        try session.checkRemembered(record)
        try session.checkDeclarations(by: record)
        try session.sealAnew(under: newRecord.generation, progress)
        try session.setVault(newRecord)
        session.note(.vaultKeyReplaced)
      }
    } catch {
      self.keys.settle(newRecord.generation, isCurrent: false)
      throw error
    }
    self.keys.settle(newRecord.generation, isCurrent: true)
    remember()
    let dropped = dropped.sorted().map { "slot \($0)" }.joined(separator: ", ")
    try database.clearTraces(
      after: "The vault has a new key" + (dropped.isEmpty ? "" : ", and no longer opens with \(dropped)"),
      next: "Compact the store to clear them.")
  }

  /// Checks whether `rotate(newKeyFor:droppingSlots:progress:)` can rewrite the whole store, as its last step does.
  package func checkRewritable() throws { try database.checkRewritable() }
}
