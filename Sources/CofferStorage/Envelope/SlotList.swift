import CofferCrypto

/// The slots of a store or a vault, each with the same key in it.
///
/// `owner` is the id of the store, or of the vault; slots open for no other.
extension [Slot] {
  package static var maximumCount: Int { 16 }

  /// The key behind the first slot that answers to `source`, and what opens that slot again.
  ///
  /// - Parameters:
  ///   - maximumWork: What the slots that are tried may cost together.
  ///   - isRight: Checks the key; what it throws ends the search.
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
        // Nothing here is authenticated yet: whoever can write the file could keep this machine busy for long.
        work += slot.stretching.work ?? 0
        guard work <= maximumWork else {
          throw StorageError.unsupported(
            reason: "slot \(slot.id) was not tried, for the passphrase slots cost more together than an opening may")
        }
        guard let slotKey = try slot.key(from: secret, owner: owner) else { continue }
        let key = try slot.unwrap(with: slotKey, owner: owner)
        try isRight(key)
        return (key, slot.id, slotKey)
      } catch let error as StorageError {
        // A slot that this machine cannot try keeps nobody from the others.
        guard case .unsupported = error else { throw error }
        unusable = error
      }
    }
    throw unusable ?? .wrongKey
  }

  /// The slots that `source` may open, those first that cost the least to try; of equal ones those of its own kind.
  private func inOrder(for source: KeySource) -> [Slot] {
    func rank(_ slot: Slot) -> (UInt64, Int) { (slot.stretching.work ?? .max, slot.kind == source.kind ? 0 : 1) }
    return filter { source.opens($0.kind) }.sorted { rank($0) < rank($1) }
  }

  /// Refuses slots that no single opening could try.
  private func checkTotalCost() throws {
    guard reduce(0, { $0 + ($1.stretching.work ?? 0) }) <= Slot.Stretching.maximumTotalWork else {
      throw StorageError.unsupported(
        reason: "the passphrase slots would cost more together than an opening may; choose a lower cost")
    }
  }

  /// Adds a slot that `secret` opens, with the lowest number that is free.
  ///
  /// - Throws: `StorageError.slotsFull`; `.unsupported` when trying all slots would cost too much.
  mutating func add(_ secret: PreparedSecret, wrapping key: SecretBytes, owner: [UInt8]) throws -> Slot {
    guard count < Self.maximumCount, let id = (UInt8.min...UInt8.max).first(where: { id in !contains { $0.id == id } })
    else { throw StorageError.slotsFull(maximum: Self.maximumCount) }
    let slot = try Slot(id: id, secret, wrapping: key, owner: owner)
    try (self + [slot]).checkTotalCost()
    append(slot)
    return slot
  }

  /// Puts a slot that `secret` opens in the place of another.
  ///
  /// - Throws: `StorageError.slotNotFound`; `.unsupported` as `add`.
  mutating func replace(
    _ id: UInt8, with secret: PreparedSecret, wrapping key: SecretBytes, owner: [UInt8]
  ) throws -> Slot {
    let index = try index(of: id)
    var slots = self
    slots[index] = try Slot(id: id, secret, wrapping: key, owner: owner)
    try slots.checkTotalCost()
    self = slots
    return slots[index]
  }

  /// - Throws: `StorageError.slotNotFound`; `.lastSlot`, for nothing would open the store any more.
  mutating func remove(_ id: UInt8) throws {
    let index = try index(of: id)
    guard count > 1 else { throw StorageError.lastSlot }
    remove(at: index)
  }

  /// - Throws: `StorageError.slotNotFound`; `.unsupported` when the label is too long.
  mutating func setLabel(_ label: String, of id: UInt8) throws {
    try Slot.check(label: label)
    self[try index(of: id)].label = label
  }

  private func index(of id: UInt8) throws -> Int {
    guard let index = firstIndex(where: { $0.id == id }) else { throw StorageError.slotNotFound(id: Int(id)) }
    return index
  }

  /// What opens the slots that are to get another key.
  ///
  /// - Parameter dropped: The slots that go.
  /// - Throws: `StorageError.slotsNotOpened` when a slot neither opens nor is to go; `.wrongKey` when a source opens none;
  ///   `.slotNotFound`, `.lastSlot`.
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

  /// The slots that `keys` open, with another key in them; the others go.
  ///
  /// - Throws: `StorageError.slotsNotOpened` when a slot neither opens nor is to go: it was added or changed meanwhile.
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
