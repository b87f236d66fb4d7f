import CofferCrypto

/// A draft of a new envelope.
package struct EnvelopeChange {
  var envelope: Envelope
  private(set) var rootKey: RootKey

  init(envelope: Envelope, rootKey: RootKey) {
    self.envelope = envelope
    self.rootKey = rootKey
  }

  private var storeID: [UInt8] { envelope.storeID }

  // MARK: Slots

  package var slots: [Slot] { envelope.slots }

  package mutating func apply(_ change: SlotChange) throws -> Slot {
    let slot = try envelope.slots.apply(change, wrapping: rootKey.key, owner: storeID)
    // The old secret no longer opens this slot; the new one does.
    if case .replace(rootKey.slotID, let secret) = change {
      rootKey = RootKey(key: rootKey.key, slotID: slot.id, slotKey: secret.key)
    }
    return slot
  }

  // MARK: Placing

  /// Sets whether the file was put in its place by a restore.
  mutating func setPlaced(_ isPlaced: Bool) {
    envelope.isPlaced = isPlaced
  }

  // MARK: Keys

  /// Replaces the root key and adds an epoch: anyone who copied the old envelope and could open it has the keys of
  /// all epochs in it.
  ///
  /// The old root key vouches for the new one, to programs that hold it.
  ///
  /// Modelled in `Documentation/Models/RootKey.pml`.
  ///
  /// - Throws: `StorageError.slotsNotOpened`; also the errors of `addEpoch()`.
  package mutating func replaceRootKey(_ replacement: RootKeyReplacement) throws {
    let key = try SecretBytes.random(count: 32)
    envelope.slots = try envelope.slots.rewrapped(
      key, with: replacement.keys, dropping: replacement.dropped, owner: storeID)
    envelope.epochs = try envelope.epochs.map { try $0.rewrapped(from: rootKey.key, under: key, storeID: storeID) }
    envelope.succession = try Succession(from: rootKey.key, to: key, storeID: storeID)
    // This store's own slot may be among those removed; the store then stays open until the root key is next
    // replaced.
    rootKey = RootKey(key: key, slotID: rootKey.slotID, slotKey: rootKey.slotKey)
    try addEpoch()
  }

  /// Adds an epoch, unless a rotation to a new epoch is already under way.
  package mutating func beginRotation() throws {
    if envelope.epochs.count == 1 { try addEpoch() }
  }

  /// Adds an epoch; everything written from now on is sealed under its key.
  ///
  /// - Throws: `StorageError.unsupported` when the envelope has no room for another epoch, or the numbers are used
  ///   up.
  private mutating func addEpoch() throws {
    guard envelope.hasRoomForEpoch else {
      throw StorageError.unsupported(reason: "the envelope has no room for another epoch; rotate again")
    }
    envelope.epochs.append(
      try Epoch(
        number: envelope.nextEpoch(), created: Clock.timestamp, rootKey: rootKey.key, storeID: storeID))
  }

  /// Drops the keys of all epochs but the newest.
  package mutating func dropOldEpochs() {
    let current = envelope.currentEpoch
    envelope.epochs.removeAll { $0.number != current }
  }
}

/// The slot keys for a new root key.
///
/// Does all slow work before any lock is held.
package struct RootKeyReplacement: Sendable {
  let keys: [UInt8: SlotKey]
  package let dropped: Set<UInt8>
}
