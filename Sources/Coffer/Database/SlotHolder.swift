import CofferStorage

/// A store or its vault: each has slots, one for each secret that opens it.
///
/// ```swift
/// try database.addSlot(.passphrase(passphrase), label: "Ada")
/// try database.vault.addSlot(.passphrase(another), label: "Ada")
/// ```
///
/// Changing the slots of a vault needs its key: while it is locked, that throws ``CofferError/vaultLocked(collection:)``.
public protocol SlotHolder: Sendable {
  /// For the library itself.
  var slotAccess: SlotAccess { get }
}

extension SlotHolder {
  /// The slots: the secrets that open the store, or unlock the vault.
  ///
  /// - Throws: `CofferError.unsupported` for a store in memory; `.vaultNotFound`; `.closed`, `.damaged` or `.inputOutput`.
  public func slots() throws -> [SlotInfo] {
    try slotAccess.read().slots.map(SlotInfo.init)
  }

  /// Adds a slot, so that another secret opens the store, or unlocks the vault.
  ///
  /// Stretching a passphrase takes long, and is done before any lock is taken.
  ///
  /// - Parameters:
  ///   - key: The new secret.
  ///   - label: A name for people, at most 64 bytes.
  ///   - stretching: The cost of each guess at a passphrase. Ignored for random keys.
  /// - Throws: `CofferError.secretInUse` when it opens a slot already; `.slotsFull` when there are 16; `.unsupported` when the label is too long, the cost is out of
  ///   bounds, or the store is in memory; `.keyUnavailable`; `.vaultLocked`, `.vaultNotFound`; and as `Connection.readWrite`. Nothing is
  ///   changed then.
  @discardableResult
  public func addSlot(
    _ key: KeySource, label: String = "", stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    try slotAccess.change(SlotChange.add) { try slotAccess.prepare(key, label, stretching) }
  }

  /// Adds a slot, as the public form does, whose secret is kept in a place that names the slot.
  ///
  /// - Parameter place: Keeps the secret. It gets the new slot and the present ones before the new one is written, while no other process can
  ///   change them. However this process ends, there is no slot whose secret was not kept; a secret may be left whose slot was not written.
  /// - Throws: Also the errors of `place`.
  package func addSlot(
    _ key: KeySource, label: String, keptBy place: (_ slot: SlotInfo, _ present: [SlotInfo]) throws -> Void
  ) throws -> SlotInfo {
    try slotAccess.change(SlotChange.add, keptBy: place) { try slotAccess.prepare(key, label, .standard) }
  }

  /// Adds a recovery key: a random key to write down, in case the other keys are lost.
  ///
  /// - Returns: The key, which is stored nowhere else.
  /// - Throws: As `addSlot(_:label:stretching:)`.
  public func addRecoveryKey(label: String = "") throws -> RecoveryKey {
    try addRecoveryKey(label: label) { _ in }
  }

  /// The same, with a key that is kept first; see `addSlot(_:label:keptBy:)`.
  @discardableResult
  package func addRecoveryKey(label: String, keptBy place: (RecoveryKey) throws -> Void) throws -> RecoveryKey {
    let key = try CofferError.translating { try RecoveryKey() }
    _ = try addSlot(.recoveryKey(key.text), label: label) { _, _ in try place(key) }
    return key
  }

  /// Replaces a slot's secret; the ID stays.
  ///
  /// Someone with the old secret and a copy of the file can still read that copy, and what is written later under the same
  /// root key, or vault key; `rotate` with new keys ends that.
  ///
  /// - Parameters:
  ///   - id: The slot.
  ///   - key: The new secret.
  ///   - label: The new label; nil keeps the current one.
  ///   - stretching: As with `addSlot(_:label:stretching:)`.
  /// - Throws: `CofferError.slotNotFound`; as `addSlot(_:label:stretching:)`. The same passphrase is accepted if it is to be
  ///   stretched in another way.
  @discardableResult
  public func changeSlot(
    _ id: Int, to key: KeySource, label: String? = nil, stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    try changeSlot(id, to: key, label: label, stretching: stretching) { _ in }
  }

  /// The same, if the slots that are there then pass a check.
  ///
  /// - Parameter check: Gets the slots, which no other process can change until this one has; it is not changed if this throws.
  @discardableResult
  package func changeSlot(
    _ id: Int, to key: KeySource, label: String?, stretching: PasswordHash, checking check: ([SlotInfo]) throws -> Void
  ) throws -> SlotInfo {
    guard let known = try slots().first(where: { $0.id == id }) else { throw CofferError.slotNotFound(id: id) }
    let number = try SlotAccess.number(id)
    return try slotAccess.change({ .replace(number, $0) }, keptBy: { try check($1) }) {
      try slotAccess.prepare(key, label ?? known.label, stretching, replacing: number)
    }
  }

  /// Changes a slot's label.
  ///
  /// - Throws: `CofferError.slotNotFound`; `.unsupported` when the label is longer than 64 bytes; `.vaultLocked`, `.vaultNotFound`; as
  ///   `Connection.readWrite`.
  public func setLabel(_ label: String, forSlot id: Int) throws {
    _ = try slotAccess.change(.label(SlotAccess.number(id), label))
  }

  /// Removes a slot, so that its secret no longer opens the store, or unlocks the vault; nothing of it stays in the file.
  ///
  /// If the disk fails after the first of the two copies of the store's header was written, the slot is removed, and the
  /// second copy still has it until the next change of the store; the logger gets a warning.
  ///
  /// Someone with its secret and a copy of the file can still read that copy, and what is written later under the same root
  /// key, or vault key; `rotate` with new keys ends that.
  ///
  /// - Throws: `CofferError.slotNotFound`; `.lastSlot`; `.vaultLocked`, `.vaultNotFound`; as `Connection.readWrite`.
  public func removeSlot(_ id: Int) throws {
    try removeSlot(id) { _ in }
  }

  /// The same, if the slots that are there then pass a check; see `changeSlot(_:to:label:stretching:checking:)`.
  package func removeSlot(_ id: Int, checking check: ([SlotInfo]) throws -> Void) throws {
    _ = try slotAccess.change(.remove(SlotAccess.number(id)), keptBy: { try check($1) })
  }

  /// The slot that `key` opens; nil if it opens none.
  package func slot(openedBy key: KeySource) throws -> SlotInfo? {
    let (owner, slots) = try slotAccess.read()
    return try CofferError.translating { try slots.slot(openedBy: key, owner: owner).map(SlotInfo.init) }
  }
}

// MARK: - Without blocking

extension SlotHolder {
  /// Adds a slot, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call, as do the forms below.
  @discardableResult
  public func addSlot(
    _ key: KeySource, label: String = "", stretching: PasswordHash = .standard
  ) async throws -> SlotInfo {
    try await withoutBlocking { try self.addSlot(key, label: label, stretching: stretching) }
  }

  /// Adds a recovery key, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func addRecoveryKey(label: String = "") async throws -> RecoveryKey {
    try await withoutBlocking { try self.addRecoveryKey(label: label) }
  }

  /// Replaces a slot's secret, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  @discardableResult
  public func changeSlot(
    _ id: Int, to key: KeySource, label: String? = nil, stretching: PasswordHash = .standard
  ) async throws -> SlotInfo {
    try await withoutBlocking { try self.changeSlot(id, to: key, label: label, stretching: stretching) }
  }

  /// Changes a slot's label, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func setLabel(_ label: String, forSlot id: Int) async throws {
    try await withoutBlocking { try self.setLabel(label, forSlot: id) }
  }

  /// Removes a slot, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func removeSlot(_ id: Int) async throws {
    try await withoutBlocking { try self.removeSlot(id) }
  }
}

// MARK: - The two holders

/// Reads and changes the slots of a store or of its vault.
public struct SlotAccess: Sendable {
  let database: Database
  let isOfVault: Bool
}

extension Database: SlotHolder {
  /// The slots of the store.
  public var slotAccess: SlotAccess { SlotAccess(database: self, isOfVault: false) }

  /// The number of the slot that has opened the store.
  package func openedSlot() throws -> Int { Int(try storeOnDisk().openedSlot) }
}

extension Vault: SlotHolder {
  /// The slots of the vault.
  public var slotAccess: SlotAccess { SlotAccess(database: database, isOfVault: true) }
}

extension SlotAccess {
  /// The number of a slot as it is stored.
  static func number(_ id: Int) throws -> UInt8 {
    guard let number = UInt8(exactly: id) else { throw CofferError.slotNotFound(id: id) }
    return number
  }

  /// The ID of the store or the vault, and its slots.
  fileprivate func read() throws -> (owner: [UInt8], slots: [Slot]) {
    if isOfVault {
      let record = try database.vault.existingRecord()
      return (record.id, record.slots)
    }
    let store = try database.storeOnDisk()
    return try CofferError.translating {
      try store.refresh()
      return (store.storeID, store.envelope.slots)
    }
  }

  /// Does the slow work, before any lock is held.
  fileprivate func prepare(
    _ key: KeySource, _ label: String, _ stretching: PasswordHash, replacing replaced: UInt8? = nil
  ) throws -> PreparedSecret {
    let (owner, slots) = try read()
    if isOfVault { _ = try database.vault.vaultKey() }
    return try CofferError.translating {
      try PreparedSecret(
        key, stretching: .password(stretching), label: label, owner: owner, comparedWith: slots, replacing: replaced)
    }
  }

  /// Changes a slot by a secret that is prepared before; again, if others have changed the slots with which it was compared.
  ///
  /// - Parameter place: As in the form below.
  fileprivate func change(
    _ change: (PreparedSecret) -> SlotChange, keptBy place: (SlotInfo, [SlotInfo]) throws -> Void = { _, _ in },
    preparing prepare: () throws -> PreparedSecret
  ) throws -> SlotInfo {
    for _ in 0..<Self.attempts {
      let secret = try prepare()
      do { return try self.change(change(secret), keptBy: place) } catch CofferError.busy {
        guard try secret.mayOpenNewSlot(of: read().slots) else { throw CofferError.busy }
      }
    }
    throw CofferError.busy
  }

  /// How often a secret is prepared while others go on changing slots.
  private static let attempts = 8

  /// Changes a slot, in a transaction that says so in the log.
  ///
  /// - Parameter place: Called before it is written, with the slot and those that were there.
  fileprivate func change(
    _ change: SlotChange, keptBy place: (SlotInfo, [SlotInfo]) throws -> Void = { _, _ in }
  ) throws -> SlotInfo {
    if isOfVault { return SlotInfo(try database.write { try $0.changeVaultSlot(change, keptBy: place) }) }
    _ = try database.storeOnDisk()
    return SlotInfo(
      try database.makeConnection().perform { session in
        try session.changeEnvelope({ envelope in
          let present = envelope.slots.map(SlotInfo.init)
          let slot = try envelope.apply(change)
          try place(SlotInfo(slot), present)
          return slot
        }) { .changed(change, $0.id) }
      })
  }
}

extension Session {
  fileprivate func changeVaultSlot(
    _ change: SlotChange, keptBy place: (SlotInfo, [SlotInfo]) throws -> Void
  ) throws -> Slot {
    guard var record = try vaultRecord() else { throw CofferError.vaultNotFound }
    let present = record.slots.map(SlotInfo.init)
    let slot = try record.apply(change, key: vaultKey(authenticating: record))
    try place(SlotInfo(slot), present)
    try setVault(record)
    note(.changed(change, slot.id, ofVault: true))
    return slot
  }
}
