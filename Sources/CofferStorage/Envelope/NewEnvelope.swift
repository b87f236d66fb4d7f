import CofferCrypto

/// The envelope of a store that is being made: fresh keys, one slot, one epoch.
package struct NewEnvelope {
  let envelope: Envelope
  let rootKey: RootKey
  /// Both copies: all that a store without pages consists of.
  package let bytes: [UInt8]

  package init(key: KeySource, label: String = "", stretching: Slot.Stretching = .standard) throws {
    let storeID = try RandomSource.bytes(count: 16)
    let secret = try PreparedSecret(key, stretching: stretching, label: label, owner: storeID)
    rootKey = RootKey(key: try SecretBytes.random(count: 32), slotID: 0, slotKey: secret.key)
    let slot = try Slot(id: rootKey.slotID, secret, wrapping: rootKey.key, owner: storeID)
    let epoch = try Epoch(number: 1, created: secret.created, rootKey: rootKey.key, storeID: storeID)
    envelope = Envelope(storeID: storeID, created: secret.created, slots: [slot], epochs: [epoch])
    let copy = try envelope.encoded(rootKey: rootKey.key)
    bytes = copy + copy
  }
}
