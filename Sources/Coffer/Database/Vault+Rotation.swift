import CofferStorage

extension Vault {
  /// Checks whether `rotate(newKeyFor:droppingSlots:progress:)` has the secrets that it needs; changes nothing.
  package func checkRotation(newKeyFor keys: [KeySource], droppingSlots dropped: Set<Int>) throws {
    let record = try existingRecord()
    let droppedSlots = try Set(dropped.map(SlotAccess.number))
    try CofferError.translating { try record.checkSources(keys, dropping: droppedSlots) }
  }

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
    try rotate(newKeyFor: keys, droppingSlots: dropped, checking: { _ in }, progress: progress)
  }

  /// The same, if the slots that are there then pass a check; see `SlotHolder.changeSlot(_:to:label:stretching:checking:)`.
  package func rotate(
    newKeyFor keys: [KeySource], droppingSlots dropped: Set<Int>, checking check: ([SlotInfo]) throws -> Void,
    progress: (Double) throws -> Void
  ) throws {
    let record = try existingRecord()
    // It is the same when the new one is set.
    try check(record.slots.map(SlotInfo.init))
    // The new key's MAC will vouch for the slots and the list.
    let former = try self.keys.key(authenticating: record)
    let droppedSlots = try Set(dropped.map(SlotAccess.number))
    let (newRecord, secret) = try CofferError.translating {
      try record.replacingKey(former, openedBy: keys, dropping: droppedSlots)
    }
    try database.checkRewritable()
    // Before the commit, so that no reader meets a value whose key is missing.
    try self.keys.prepare(secret, of: newRecord)
    do {
      try database.write { session in
        let present = try session.vaultRecord()
        guard present == record else {
          try check(present?.slots.map(SlotInfo.init) ?? [])
          throw CofferError.busy
        }
        try session.checkRemembered(record)
        try session.checkDeclarations(by: record)
        try session.sealAgain(under: newRecord.generation, progress)
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
