import CofferCrypto

/// The contents of the table `vault`: the slots of a store's vault, which all wrap the vault's key, and the list of
/// sealed collections.
///
/// A MAC under the vault's key covers everything, so slots, costs and declarations cannot be changed without it.
package struct VaultRecord: Equatable, Sendable {
  /// Random; a backup has the same one.
  package let id: [UInt8]
  /// The number of keys that the vault has had, from 1.
  package let generation: UInt32
  package private(set) var slots: [Slot]
  /// The names of the sealed collections, in the order of their UTF-8 bytes.
  package private(set) var sealedCollections: [String]
  package private(set) var mac: [UInt8]
  /// A code of the former key over this one: only a holder of a vault's key can name its successor.
  ///
  /// Zeros for the first key.
  package let succession: [UInt8]

  package static let idByteCount = 16

  private init(
    id: [UInt8], generation: UInt32, succession: [UInt8], slots: [Slot], sealedCollections: [String], key: SecretBytes
  ) throws {
    self.id = id
    self.generation = generation
    self.succession = succession
    self.slots = slots
    self.sealedCollections = sealedCollections
    mac = []
    try authenticate(with: key)
  }

  /// A new vault with one slot, and its key.
  package static func make(id: [UInt8], slot secret: PreparedSecret) throws -> (record: VaultRecord, key: SecretBytes) {
    let key = try SecretBytes.random(count: 32)
    var slots: [Slot] = []
    _ = try slots.add(secret, wrapping: key, owner: id)
    let record = try VaultRecord(
      id: id, generation: 1, succession: [UInt8](repeating: 0, count: SHA256.byteCount), slots: slots,
      sealedCollections: [], key: key)
    return (record, key)
  }

  // MARK: Bytes

  /// The slots, each as its length and a record.
  package var encodedSlots: [UInt8] {
    var writer = ByteWriter()
    for record in slots.map(\.encoded) {
      writer.append(UInt16(record.count))
      writer.append(record)
    }
    return writer.bytes
  }

  /// The names of the sealed collections, each prefixed with its length.
  package var encodedSealedCollections: [UInt8] {
    var writer = ByteWriter()
    for name in sealedCollections {
      writer.append(UInt32(name.utf8.count))
      writer.append(Array(name.utf8))
    }
    return writer.bytes
  }

  /// Parses the table's contents without trusting them: see `isAuthentic(under:)`.
  package init(
    id: [UInt8], generation: Int64, mac: [UInt8], sealedCollections: [UInt8], slots slotBytes: [UInt8],
    succession: [UInt8]
  ) throws {
    guard id.count == Self.idByteCount, let generation = UInt32(exactly: generation), generation > 0,
      mac.count == SHA256.byteCount, succession.count == SHA256.byteCount,
      (generation == 1) == succession[...].isZero
    else { throw Self.damaged("its ID, its generation, its MAC or its succession is invalid") }
    self.id = id
    self.generation = generation
    self.mac = mac
    self.succession = succession
    do {
      self.sealedCollections = try Self.names(in: sealedCollections)
      slots = []
      var reader = ByteReader(slotBytes[...])
      while !reader.isAtEnd {
        let count: UInt16 = try reader.read()
        slots.append(try Slot(encoded: reader.read(count: Int(count))))
      }
    } catch EnvelopeError.newerFormat(let part, let found, let supported) {
      throw StorageError.newerFormat(part: part, found: found, supported: supported)
    } catch EnvelopeError.unreadable(let what) {
      throw Self.damaged("it has a part that this version cannot read: \(what)")
    } catch is ByteReader.Overrun {
      throw Self.damaged("a slot or a name extends past the end")
    }
    guard (1...[Slot].maximumCount).contains(slots.count), Set(slots.map(\.id)).count == slots.count else {
      throw Self.damaged("it has \(slots.count) slots, or the same slot twice")
    }
  }

  private static func names(in bytes: [UInt8]) throws -> [String] {
    var names: [String] = []
    var reader = ByteReader(bytes[...])
    while !reader.isAtEnd {
      let count: UInt32 = try reader.read()
      guard let name = String(validating: try reader.read(count: Int(count)), as: UTF8.self),
        names.last.map({ $0.utf8.lexicographicallyPrecedes(name.utf8) }) ?? true
      else { throw damaged("the list of sealed collections is invalid") }
      names.append(name)
    }
    return names
  }

  private static func damaged(_ reason: String) -> StorageError { .damaged(part: "vault", reason: reason) }

  // MARK: Authenticity

  /// Whether the record was made by someone with this key; compared in constant time.
  package func isAuthentic(under key: SecretBytes) throws -> Bool {
    ConstantTime.isEqual(try code(under: key), mac)
  }

  /// The error for a record that is not authentic.
  package static var edited: StorageError {
    damaged("its slots, or the list of sealed collections, were changed by someone without its key")
  }

  private func code(under key: SecretBytes) throws -> [UInt8] {
    var writer = ByteWriter()
    writer.append(id)
    writer.append(generation)
    writer.append(succession)
    let slots = encodedSlots
    writer.append(UInt32(slots.count))
    writer.append(slots)
    writer.append(encodedSealedCollections)
    let macKey = try HKDF.deriveKey(from: key, salt: id, info: Array("coffer v1 vault MAC".utf8), count: 32)
    return try writer.bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: macKey) }
  }

  private mutating func authenticate(with key: SecretBytes) throws {
    mac = try code(under: key)
  }

  // MARK: Succession

  /// Whether `key`, of this record, is the successor that a holder of the former key named.
  ///
  /// - Parameter successionKey: Derived from the former key.
  func isSuccessor(_ key: SecretBytes, under successionKey: SecretBytes) throws -> Bool {
    ConstantTime.isEqual(
      try Self.succession(id: id, generation: generation, key: key, under: successionKey), succession)
  }

  static func successionKey(of key: SecretBytes, vaultID: [UInt8]) throws -> SecretBytes {
    try HKDF.deriveKey(from: key, salt: vaultID, info: Array("coffer v1 vault succession".utf8), count: 32)
  }

  private static func succession(
    id: [UInt8], generation: UInt32, key: SecretBytes, under successionKey: SecretBytes
  ) throws -> [UInt8] {
    var writer = ByteWriter()
    writer.append(id)
    writer.append(generation)
    let commitment = try HKDF.deriveKey(
      from: key, salt: id, info: Array("coffer v1 vault commitment".utf8), count: 32)
    writer.append(commitment.withUnsafeBytes(Array.init))
    return try writer.bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: successionKey) }
  }

  // MARK: Opening

  /// The vault's key from the first slot that `source` opens.
  ///
  /// - Throws: `StorageError.wrongKey`; `.damaged` when the record was changed without the key.
  package func open(_ source: KeySource) throws -> SecretBytes {
    try slots.open(source, owner: id) { key in
      guard try isAuthentic(under: key) else {
        throw Self.edited
      }
    }.key
  }

  // MARK: Changing

  /// Changes a slot; `key` is the vault's.
  package mutating func apply(_ change: SlotChange, key: SecretBytes) throws -> Slot {
    let slot = try slots.apply(change, wrapping: key, owner: id)
    try authenticate(with: key)
    return slot
  }

  /// Adds a collection to the list of sealed collections, or removes it.
  package mutating func setSealed(_ isSealed: Bool, _ collection: String, key: SecretBytes) throws {
    sealedCollections.removeAll { $0.utf8.elementsEqual(collection.utf8) }
    if isSealed {
      sealedCollections.append(collection)
      sealedCollections.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
    try authenticate(with: key)
  }

  /// Whether a collection is listed as sealed.
  package func lists(_ collection: String) -> Bool {
    sealedCollections.contains { $0.utf8.elementsEqual(collection.utf8) }
  }

  /// The number of the next key.
  package func nextGeneration() throws -> UInt32 {
    let (next, isOverflow) = generation.addingReportingOverflow(1)
    guard !isOverflow else { throw StorageError.unsupported(reason: "the vault has used up all generations") }
    return next
  }

  /// Checks whether `replacingKey` has the secrets that it needs.
  package func checkSources(_ sources: [KeySource], dropping dropped: Set<UInt8>) throws {
    _ = try slots.keys(from: sources, dropping: dropped, owner: id)
  }

  /// The same vault with another key, for the slots that `sources` open; the former one vouches for it.
  ///
  /// - Throws: `StorageError.slotsNotOpened`, `.wrongKey`, `.slotNotFound`, `.lastSlot`.
  package func replacingKey(
    _ former: SecretBytes, openedBy sources: [KeySource], dropping dropped: Set<UInt8>
  ) throws -> (record: VaultRecord, key: SecretBytes) {
    let next = try nextGeneration()
    let key = try SecretBytes.random(count: 32)
    let slotKeys = try slots.keys(from: sources, dropping: dropped, owner: id)
    let slots = try slots.rewrapped(key, with: slotKeys, dropping: dropped, owner: id)
    let succession = try Self.succession(
      id: id, generation: next, key: key, under: Self.successionKey(of: former, vaultID: id))
    let record = try VaultRecord(
      id: id, generation: next, succession: succession, slots: slots, sealedCollections: sealedCollections, key: key)
    return (record, key)
  }
}
