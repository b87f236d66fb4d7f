import CofferCrypto

/// What the table `vault` holds: the slots of a store's vault, each with the vault's key in it.
///
/// A MAC under that key covers all of it, so that no slot and no cost can be changed without the key.
package struct VaultRecord: Equatable, Sendable {
  /// Random; a backup keeps it.
  package let id: [UInt8]
  /// Counts the keys that the vault has had, from 1.
  package let generation: UInt32
  package private(set) var slots: [Slot]
  private var mac: [UInt8]

  package static let idByteCount = 16

  private init(id: [UInt8], generation: UInt32, slots: [Slot], key: SecretBytes) throws {
    self.id = id
    self.generation = generation
    self.slots = slots
    mac = []
    try authenticate(with: key)
  }

  /// A new vault with one slot, and its key.
  package static func make(id: [UInt8], slot secret: PreparedSecret) throws -> (record: VaultRecord, key: SecretBytes) {
    let key = try SecretBytes.random(count: 32)
    var slots: [Slot] = []
    _ = try slots.add(secret, wrapping: key, owner: id)
    return (try VaultRecord(id: id, generation: 1, slots: slots, key: key), key)
  }

  // MARK: Bytes

  /// The slots, each as its length and a record, and the MAC.
  package var encoded: [UInt8] { encodedSlots + mac }

  private var encodedSlots: [UInt8] {
    var writer = ByteWriter()
    for record in slots.map(\.encoded) {
      writer.append(UInt16(record.count))
      writer.append(record)
    }
    return writer.bytes
  }

  /// Reads what stands in the table, without trusting it: see `isAuthentic(under:)`.
  package init(id: [UInt8], generation: Int64, encoded bytes: [UInt8]) throws {
    func damaged(_ reason: String) -> StorageError { .damaged(part: "vault", reason: reason) }
    guard id.count == Self.idByteCount, let generation = UInt32(exactly: generation), generation > 0 else {
      throw damaged("its id or its generation makes no sense")
    }
    guard bytes.count >= SHA256.byteCount else { throw damaged("it is too short") }
    self.id = id
    self.generation = generation
    mac = Array(bytes.suffix(SHA256.byteCount))
    slots = []
    do {
      var reader = ByteReader(bytes.dropLast(SHA256.byteCount))
      while !reader.isAtEnd {
        let count: UInt16 = try reader.read()
        slots.append(try Slot(encoded: reader.read(count: Int(count))))
      }
    } catch EnvelopeError.newerFormat(let part, let found, let supported) {
      throw StorageError.newerFormat(part: part, found: found, supported: supported)
    } catch EnvelopeError.unreadable(let what) {
      throw damaged("it holds what this version cannot read: \(what)")
    } catch is ByteReader.Overrun {
      throw damaged("a slot reaches past the end")
    }
    guard (1...[Slot].maximumCount).contains(slots.count), Set(slots.map(\.id)).count == slots.count else {
      throw damaged("it has \(slots.count) slots, or one twice")
    }
  }

  // MARK: Authenticity

  /// Whether the record was made by someone with this key; compared in constant time.
  package func isAuthentic(under key: SecretBytes) throws -> Bool {
    ConstantTime.isEqual(try code(under: key), mac)
  }

  private func code(under key: SecretBytes) throws -> [UInt8] {
    var writer = ByteWriter()
    writer.append(id)
    writer.append(generation)
    writer.append(encodedSlots)
    let macKey = try HKDF.deriveKey(from: key, salt: id, info: Array("coffer v1 vault MAC".utf8), count: 32)
    return try writer.bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: macKey) }
  }

  private mutating func authenticate(with key: SecretBytes) throws {
    mac = try code(under: key)
  }

  // MARK: Opening

  /// The vault's key behind the first slot that answers to `source`.
  ///
  /// - Throws: `StorageError.wrongKey`; `.damaged` when the record was changed by someone without the key.
  package func open(_ source: KeySource) throws -> SecretBytes {
    try slots.open(source, owner: id) { key in
      guard try isAuthentic(under: key) else {
        throw StorageError.damaged(part: "vault", reason: "its slots were changed by someone without its key")
      }
    }.key
  }

  // MARK: Changing

  /// Adds a slot; `key` is the vault's.
  package mutating func addSlot(_ secret: PreparedSecret, key: SecretBytes) throws -> Slot {
    let slot = try slots.add(secret, wrapping: key, owner: id)
    try authenticate(with: key)
    return slot
  }

  /// Puts a slot in the place of another.
  package mutating func replaceSlot(_ slot: UInt8, with secret: PreparedSecret, key: SecretBytes) throws -> Slot {
    let slot = try slots.replace(slot, with: secret, wrapping: key, owner: id)
    try authenticate(with: key)
    return slot
  }

  package mutating func removeSlot(_ slot: UInt8, key: SecretBytes) throws {
    try slots.remove(slot)
    try authenticate(with: key)
  }

  package mutating func setLabel(_ label: String, ofSlot slot: UInt8, key: SecretBytes) throws {
    try slots.setLabel(label, of: slot)
    try authenticate(with: key)
  }

  /// The same vault with another key, for the slots that `sources` open.
  ///
  /// - Throws: `StorageError.slotsNotOpened`, `.wrongKey`, `.slotNotFound`, `.lastSlot`.
  package func replacingKey(
    openedBy sources: [KeySource], dropping dropped: Set<UInt8>
  ) throws -> (record: VaultRecord, key: SecretBytes) {
    let (next, isOverflow) = generation.addingReportingOverflow(1)
    guard !isOverflow else { throw StorageError.unsupported(reason: "the vault has had all keys there are") }
    let key = try SecretBytes.random(count: 32)
    let slotKeys = try slots.keys(from: sources, dropping: dropped, owner: id)
    let slots = try slots.rewrapped(key, with: slotKeys, dropping: dropped, owner: id)
    return (try VaultRecord(id: id, generation: next, slots: slots, key: key), key)
  }
}
