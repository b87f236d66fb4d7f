import CofferCrypto

/// An envelope about to be written anew.
package struct EnvelopeChange {
  var envelope: Envelope
  private(set) var rootKey: RootKey

  init(envelope: Envelope, rootKey: RootKey) {
    self.envelope = envelope
    self.rootKey = rootKey
  }

  private var storeID: [UInt8] { envelope.storeID }

  // MARK: Slots

  package mutating func addSlot(_ secret: PreparedSecret) throws -> Slot {
    try envelope.slots.add(secret, wrapping: rootKey.key, owner: storeID)
  }

  package mutating func replaceSlot(_ id: UInt8, with secret: PreparedSecret) throws -> Slot {
    let slot = try envelope.slots.replace(id, with: secret, wrapping: rootKey.key, owner: storeID)
    // The secret this store was opened with opens it no longer; the new one does.
    if id == rootKey.slotID { rootKey = RootKey(key: rootKey.key, slotID: id, slotKey: secret.key) }
    return slot
  }

  package mutating func removeSlot(_ id: UInt8) throws {
    try envelope.slots.remove(id)
  }

  package mutating func setLabel(_ label: String, ofSlot id: UInt8) throws {
    try envelope.slots.setLabel(label, of: id)
  }

  // MARK: Keys

  /// Puts another root key in the place of the present one, and adds an epoch: who copied the envelope before, and could
  /// open it, has the keys of all epochs that were in it.
  ///
  /// - Throws: `StorageError.slotsNotOpened`; as `addEpoch()`.
  package mutating func replaceRootKey(_ replacement: RootKeyReplacement) throws {
    let key = try SecretBytes.random(count: 32)
    envelope.slots = try envelope.slots.rewrapped(
      key, with: replacement.keys, dropping: replacement.dropped, owner: storeID)
    envelope.epochs = try envelope.epochs.map { try $0.rewrapped(from: rootKey.key, under: key, storeID: storeID) }
    // Its own slot may be among those that go; the store then stays open until somebody replaces the root key again.
    rootKey = RootKey(key: key, slotID: rootKey.slotID, slotKey: rootKey.slotKey)
    try addEpoch()
  }

  /// Adds an epoch, unless there is one already that pages are being sealed under anew.
  package mutating func beginRotation() throws {
    if envelope.epochs.count == 1 { try addEpoch() }
  }

  /// Adds an epoch, under whose key everything is sealed from now on.
  ///
  /// - Throws: `StorageError.unsupported` when the envelope has no room for one, or no number is left.
  private mutating func addEpoch() throws {
    guard envelope.hasRoomForEpoch else {
      throw StorageError.unsupported(reason: "the envelope has no room for another epoch; rotate once more")
    }
    let (number, isOverflow) = envelope.currentEpoch.addingReportingOverflow(1)
    guard !isOverflow else { throw StorageError.unsupported(reason: "the store has had all epochs there are") }
    envelope.epochs.append(
      try Epoch(
        number: number, created: Clock.timestamp, rootKey: rootKey.key, storeID: storeID))
  }

  /// Drops the keys of all epochs but the newest.
  package mutating func dropOldEpochs() {
    let current = envelope.currentEpoch
    envelope.epochs.removeAll { $0.number != current }
  }
}

/// Whom a new root key is for: all that takes long, before any lock is held.
package struct RootKeyReplacement: Sendable {
  let keys: [UInt8: SlotKey]
  let dropped: Set<UInt8>

  /// - Throws: `StorageError.slotsNotOpened` when a slot neither opens nor is to go; `.wrongKey` when a source opens none;
  ///   `.slotNotFound`, `.lastSlot`.
  package init(_ store: Store, for sources: [KeySource], dropping dropped: Set<UInt8>) throws {
    keys = try store.envelope.slots.keys(from: sources, dropping: dropped, owner: store.storeID)
    self.dropped = dropped
  }
}
