import CofferCrypto

/// A change of a slot, of a store or of a vault.
package enum SlotChange: Sendable {
  case add(PreparedSecret)
  case replace(UInt8, PreparedSecret)
  case label(UInt8, String)
  case remove(UInt8)
}

/// The slots of a store or a vault, which all wrap the same key.
///
/// `owner` is the id of the store or the vault; a slot opens only for its owner.
extension [Slot] {
  package static var maximumCount: Int { 16 }

  /// The key from the first slot that `source` opens, and the slot key that opens that slot again.
  ///
  /// - Parameters:
  ///   - maximumWork: The total cost of the slots that may be tried.
  ///   - isRight: Checks the key; an error it throws ends the search.
  func open(
    _ source: KeySource, owner: [UInt8], maximumWork: UInt64 = Slot.Stretching.maximumTotalWork,
    isRight: (SecretBytes) throws -> Void
  ) throws -> (key: SecretBytes, slotID: UInt8, slotKey: SlotKey) {
    let secret = try source.secret()
    var unusable: StorageError?
    var work: UInt64 = 0
    for slot in inOrder(for: source) {
      do {
        try slot.stretching.checkCost()
        // Nothing here is authenticated yet: anyone who can write the file could keep this machine busy for a long
        // time.
        work += slot.stretching.work ?? 0
        guard work <= maximumWork else {
          throw StorageError.unsupported(
            reason: "slot \(slot.id) was not tried: the total cost of the passphrase slots exceeds the limit")
        }
        guard let slotKey = try slot.key(from: secret, owner: owner) else { continue }
        let key = try slot.unwrap(with: slotKey, owner: owner)
        try isRight(key)
        return (key, slot.id, slotKey)
      } catch let error as StorageError {
        // A slot that this machine cannot try must not block the others.
        guard case .unsupported = error else { throw error }
        unusable = error
      }
    }
    throw unusable ?? .wrongKey
  }

  /// The slots that `source` may open, cheapest first; at equal cost, those of its own kind first.
  private func inOrder(for source: KeySource) -> [Slot] {
    func rank(_ slot: Slot) -> (UInt64, Int) { (slot.stretching.work ?? .max, slot.kind == source.kind ? 0 : 1) }
    return filter { source.opens($0.kind) }.sorted { rank($0) < rank($1) }
  }

  /// Refuses slots that no single opening could try.
  private func checkTotalCost() throws {
    guard reduce(0, { $0 + ($1.stretching.work ?? 0) }) <= Slot.Stretching.maximumTotalWork else {
      throw StorageError.unsupported(
        reason: "the total cost of the passphrase slots would exceed the limit; choose a lower cost")
    }
  }

  /// Adds a slot that `secret` opens, under the lowest free number.
  ///
  /// - Throws: `StorageError.slotsFull`; `.unsupported` when trying all slots would cost too much.
  mutating func add(_ secret: PreparedSecret, wrapping key: SecretBytes, owner: [UInt8]) throws -> Slot {
    try secret.check(against: self)
    guard count < Self.maximumCount, let id = (UInt8.min...UInt8.max).first(where: { id in !contains { $0.id == id } })
    else { throw StorageError.slotsFull(maximum: Self.maximumCount) }
    let slot = try Slot(id: id, secret, wrapping: key, owner: owner)
    try (self + [slot]).checkTotalCost()
    append(slot)
    return slot
  }

  /// Replaces a slot by one that `secret` opens.
  ///
  /// - Throws: `StorageError.slotNotFound`; `.unsupported` like `add`.
  mutating func replace(
    _ id: UInt8, with secret: PreparedSecret, wrapping key: SecretBytes, owner: [UInt8]
  ) throws -> Slot {
    let index = try index(of: id)
    try secret.check(against: self)
    var slots = self
    slots[index] = try Slot(id: id, secret, wrapping: key, owner: owner)
    try slots.checkTotalCost()
    self = slots
    return slots[index]
  }

  /// - Throws: `StorageError.slotNotFound`; `.lastSlot`, because nothing would open the store any more.
  private mutating func remove(_ id: UInt8) throws -> Slot {
    let index = try index(of: id)
    guard count > 1 else { throw StorageError.lastSlot }
    return remove(at: index)
  }

  /// - Throws: `StorageError.slotNotFound`; `.unsupported` when the label is too long.
  private mutating func setLabel(_ label: String, of id: UInt8) throws -> Slot {
    try Slot.check(label: label)
    let index = try index(of: id)
    self[index].label = label
    return self[index]
  }

  /// Changes a slot.
  ///
  /// - Returns: The slot as it is now; as it was, if it is removed.
  mutating func apply(_ change: SlotChange, wrapping key: SecretBytes, owner: [UInt8]) throws -> Slot {
    switch change {
    case .add(let secret): try add(secret, wrapping: key, owner: owner)
    case .replace(let id, let secret): try replace(id, with: secret, wrapping: key, owner: owner)
    case .label(let id, let label): try setLabel(label, of: id)
    case .remove(let id): try remove(id)
    }
  }

  private func index(of id: UInt8) throws -> Int {
    guard let index = firstIndex(where: { $0.id == id }) else { throw StorageError.slotNotFound(id: Int(id)) }
    return index
  }

  /// The slot that `source` opens; nil if it opens none that this machine can try.
  package func slot(openedBy source: KeySource, owner: [UInt8]) throws -> Slot? {
    let secret = try source.secret()
    return inOrder(for: source).first { (try? $0.key(from: secret, owner: owner)) ?? nil != nil }
  }

  /// The slot keys of the slots that will get another key.
  ///
  /// - Parameter dropped: The slots to remove.
  /// - Throws: `StorageError.slotsNotOpened` when a slot is neither opened nor dropped; `.wrongKey` when a source
  ///   opens no slot; `.slotNotFound`, `.lastSlot`.
  func keys(from sources: [KeySource], dropping dropped: Set<UInt8>, owner: [UInt8]) throws -> [UInt8: SlotKey] {
    for id in dropped { _ = try index(of: id) }
    let kept = filter { !dropped.contains($0.id) }
    guard !kept.isEmpty else { throw StorageError.lastSlot }
    var keys: [UInt8: SlotKey] = [:]
    for source in sources {
      let secret = try source.secret()
      let opened = try kept.compactMap { slot in
        source.opens(slot.kind) ? try slot.key(from: secret, owner: owner).map { (slot.id, $0) } : nil
      }
      guard !opened.isEmpty else { throw StorageError.wrongKey }
      keys.merge(opened) { first, _ in first }
    }
    let missing = kept.filter { keys[$0.id] == nil }
    guard missing.isEmpty else { throw StorageError.slotsNotOpened(ids: missing.map { Int($0.id) }) }
    return keys
  }

  /// The slots that `keys` open, with another key in them; the others are removed.
  ///
  /// - Throws: `StorageError.slotsNotOpened` when a slot is neither opened nor dropped, because it was added or
  ///   changed meanwhile.
  func rewrapped(
    _ newKey: SecretBytes, with keys: [UInt8: SlotKey], dropping dropped: Set<UInt8>, owner: [UInt8]
  ) throws -> [Slot] {
    try filter { !dropped.contains($0.id) }.map { slot in
      guard let key = keys[slot.id], key.salt == slot.salt else {
        throw StorageError.slotsNotOpened(ids: [Int(slot.id)])
      }
      return try slot.rewrapping(newKey, with: key, owner: owner)
    }
  }
}
