import CofferStorage

extension Vault {
  // MARK: Slots

  /// What unlocks the vault.
  ///
  /// - Throws: `CofferError.vaultNotFound`.
  public func slots() throws -> [SlotInfo] {
    try existingRecord().slots.map(SlotInfo.init)
  }

  /// Adds a slot, so that `key` unlocks the vault as well.
  ///
  /// - Parameters:
  ///   - label: What the slot is called, up to 64 bytes.
  ///   - stretching: How much each guess at a passphrase costs.
  /// - Returns: The new slot.
  /// - Throws: `CofferError.locked` while the vault is locked, `.vaultNotFound`, `.slotsFull`, `.keyUnavailable`,
  ///   `.unsupported`; what a write transaction throws. Nothing was changed then, as with the others below.
  @discardableResult
  public func addSlot(
    _ key: KeySource, label: String = "", stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    let secret = try prepared(key, label: label, stretching: stretching)
    return try change { SlotInfo(try $0.addSlot(secret, key: $1)) }
  }

  /// Adds a slot for a random key that is written down, for the day all others are gone.
  ///
  /// - Returns: The key, which is nowhere else.
  /// - Throws: As ``addSlot(_:label:stretching:)``.
  public func addRecoveryKey(label: String = "") throws -> RecoveryKey {
    let key = try CofferError.translating { try RecoveryKey() }
    try addSlot(.recoveryKey(key.text), label: label)
    return key
  }

  /// Replaces a slot's secret; the ID stays.
  ///
  /// - Parameter label: What it is called from then on; nil keeps its label.
  /// - Returns: The slot as it is now.
  /// - Throws: `CofferError.slotNotFound`; as ``addSlot(_:label:stretching:)``.
  @discardableResult
  public func changeSlot(
    _ id: Int, to key: KeySource, label: String? = nil, stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    guard let slot = try slots().first(where: { $0.id == id }) else { throw CofferError.slotNotFound(id: id) }
    let secret = try prepared(key, label: label ?? slot.label, stretching: stretching)
    return try change { SlotInfo(try $0.replaceSlot(UInt8(clamping: id), with: secret, key: $1)) }
  }

  /// Gives a slot another label.
  ///
  /// - Throws: `CofferError.slotNotFound`; as ``addSlot(_:label:stretching:)``.
  public func labelSlot(_ id: Int, _ label: String) throws {
    let slot = try number(id)
    try change { try $0.setLabel(label, ofSlot: slot, key: $1) }
  }

  /// Removes a slot.
  ///
  /// Its owner may have kept a copy of the store, or the vault's key; ``rotate(newKeyFor:droppingSlots:progress:)`` gives the vault
  /// a new one.
  ///
  /// - Throws: `CofferError.slotNotFound`, `.lastSlot`; as ``addSlot(_:label:stretching:)``.
  public func removeSlot(_ id: Int) throws {
    let slot = try number(id)
    try change { try $0.removeSlot(slot, key: $1) }
  }

  private func number(_ id: Int) throws -> UInt8 {
    guard let number = UInt8(exactly: id) else { throw CofferError.slotNotFound(id: id) }
    return number
  }

  /// Does what takes long before any lock is held.
  private func prepared(_ key: KeySource, label: String, stretching: PasswordHash) throws -> PreparedSecret {
    let id = try existingRecord().id
    _ = try vaultKey()
    return try CofferError.translating {
      try PreparedSecret(key, stretching: .password(stretching), label: label, owner: id)
    }
  }

  /// Changes the vault's slots, with its key.
  private func change<Result>(_ body: (inout VaultRecord, SecretBytes) throws -> Result) throws -> Result {
    try database.write { session in
      guard var record = try session.vaultRecord() else { throw CofferError.vaultNotFound }
      let result = try body(&record, keys.key(authenticating: record))
      try session.setVault(record)
      return result
    }
  }

  // MARK: A new key

  /// Gives the vault a new key, and seals all that is sealed anew, in one transaction.
  ///
  /// The earlier key, or a slot that was removed, opens nothing any more but older copies.
  ///
  /// ```swift
  /// try vault.rotate(newKeyFor: [.passphrase(mine), .recoveryKey(written)], droppingSlots: [2])
  /// ```
  ///
  /// - Parameters:
  ///   - keys: The secrets of all slots that are to stay: the new key is put behind each of them.
  ///   - dropped: The slots that go.
  ///   - progress: Gets the share that is done, from 0 to 1; what it throws ends the rotation, and changes nothing.
  /// - Throws: `CofferError.slotsNotOpened` when a slot's secret is missing and it is not named among those that go,
  ///   `.wrongKey` when a secret is no slot's, `.slotNotFound`, `.lastSlot`; `.locked` while the vault is locked,
  ///   `.vaultNotFound`; `.damaged` when a value does not open; `.busy`, also when someone else changes the slots meanwhile.
  ///   Nothing was changed then. As with ``Database/seal(collection:)``, `.busy` may also say that the log could not be
  ///   cleared.
  public func rotate(
    newKeyFor keys: [KeySource], droppingSlots dropped: Set<Int> = [], progress: (Double) throws -> Void = { _ in }
  ) throws {
    let record = try existingRecord()
    // The new key's MAC will say that slots and list are right.
    _ = try self.keys.key(authenticating: record)
    let droppedSlots = try Set(dropped.map(number))
    let (newRecord, secret) = try CofferError.translating {
      try record.replacingKey(openedBy: keys, dropping: droppedSlots)
    }
    // Before the commit, so that no reader meets a value whose key is not there yet.
    try self.keys.prepare(secret, of: newRecord)
    do {
      try database.write { session in
        guard try session.vaultRecord() == record else { throw CofferError.busy }
        try session.checkDeclarations(by: record)
        try session.sealAnew(under: newRecord.generation, progress)
        try session.setVault(newRecord)
      }
    } catch {
      self.keys.settle(newRecord.generation, isCurrent: false)
      throw error
    }
    self.keys.settle(newRecord.generation, isCurrent: true)
    try database.clearTraces()
  }
}
