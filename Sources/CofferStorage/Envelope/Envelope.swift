import CofferCrypto

/// Why a copy of the envelope could not be read, before any key is tried.
enum EnvelopeError: Error, Equatable {
  case wrongMagic
  case checksumMismatch
  /// Made by a newer version, with a number that this one does not know.
  case newerFormat(part: String, found: Int, supported: Int)
  case unreadable(String)

  static func check(_ found: some BinaryInteger, isAtMost supported: some BinaryInteger, _ part: String) throws {
    guard found <= supported else {
      throw Self.newerFormat(part: part, found: Int(clamping: found), supported: Int(clamping: supported))
    }
  }
}

/// The header before the pages: the slots that open the store, and the epochs whose keys seal it.
///
/// It is stored twice. A checksum detects a torn or damaged copy before any key is known. A MAC under the root key,
/// checked after unlocking, covers everything, so costs cannot be lowered and slots and epochs cannot be swapped.
package struct Envelope: Equatable, Sendable {
  package static let magic = Array("COFFER\r\n".utf8)
  package static let maximumEpochCount = 4
  static let sequenceOffset = 16
  private static let placedFlag: UInt32 = 1

  package var sequence: UInt64
  package let storeID: [UInt8]
  /// Milliseconds since 1970.
  package let created: UInt64
  package var slots: [Slot]
  package var epochs: [Epoch]
  /// What the root key is the successor of; nil in a store whose root key was never replaced.
  var succession: Succession?
  /// Whether a restore put the file in its place, and what lies beside it is not known to be its own yet; see
  /// `Store.settle()`.
  package var isPlaced = false
  /// The bytes that the MAC was computed over, and the MAC as read; `encoded(rootKey:)` recomputes both.
  private var authenticated: [UInt8] = []
  private var mac: [UInt8] = []

  package init(storeID: [UInt8], created: UInt64, slots: [Slot], epochs: [Epoch]) {
    sequence = 1
    self.storeID = storeID
    self.created = created
    self.slots = slots
    self.epochs = epochs
  }

  /// The keys of all epochs.
  func keys(rootKey: SecretBytes) throws -> [EpochKeys] {
    try epochs.map { try $0.keys(rootKey: rootKey, storeID: storeID) }
  }

  /// The epoch that pages are written under: the one with the highest number.
  package var currentEpoch: UInt32 { epochs.map(\.number).max() ?? 0 }

  /// The sequence of the envelope after the next change.
  package func nextSequence() throws -> UInt64 {
    let (next, isOverflow) = sequence.addingReportingOverflow(1)
    guard !isOverflow else {
      throw StorageError.unsupported(reason: "the envelope has used up all of its sequence numbers")
    }
    return next
  }

  /// The number of the epoch after the newest one.
  package func nextEpoch() throws -> UInt32 {
    let (next, isOverflow) = currentEpoch.addingReportingOverflow(1)
    guard !isOverflow else { throw StorageError.unsupported(reason: "the store has used up all epochs") }
    return next
  }

  package var hasRoomForEpoch: Bool { epochs.count < Self.maximumEpochCount }
}

// MARK: - Bytes

extension Envelope {
  private static let checksumOffset = Layout.envelopeCopyByteCount - SHA256.byteCount
  /// The bytes that the checksum covers; the log notice follows.
  package static let checkedByteCount = LogNotice.range.lowerBound

  /// One copy of the envelope.
  package func encoded(rootKey: SecretBytes) throws -> [UInt8] {
    var writer = ByteWriter()
    writer.append(Self.magic)
    writer.append(Layout.formatVersion)
    writer.append(Layout.suite)
    writer.append(isPlaced ? Self.placedFlag : 0)
    writer.append(sequence)
    writer.append(storeID)
    writer.append(created)
    writer.append(UInt32(Layout.pageByteCount))
    writer.append(UInt16(Layout.reserveByteCount))
    writer.append(UInt8(slots.count))
    writer.append(UInt8(epochs.count))
    for record in slots.map(\.encoded) + epochs.map(\.encoded) {
      writer.append(UInt16(record.count))
      writer.append(record)
    }
    writer.append(succession?.encoded ?? Succession.none)
    var bytes = writer.bytes
    bytes += try Self.mac(of: bytes, rootKey: rootKey, storeID: storeID)
    guard bytes.count <= Self.checkedByteCount else {
      throw StorageError.unsupported(reason: "the slots and their labels do not fit into the envelope")
    }
    bytes += [UInt8](repeating: 0, count: Self.checkedByteCount - bytes.count)
    return try Self.checksummed(bytes)
  }

  /// A whole copy: the bytes that the checksum covers, an empty log notice, and the checksum.
  package static func checksummed(_ checked: some Sequence<UInt8>) throws -> [UInt8] {
    let checked = Array(checked.prefix(checkedByteCount))
    let digest = try checked.withUnsafeBytes(SHA256.digest)
    return checked + [UInt8](repeating: 0, count: LogNotice.range.count) + digest
  }

  /// Parses one copy without trusting it: see `verify(rootKey:)`.
  ///
  /// The log notice must have been cleared from it.
  ///
  /// Magic, format version and checksum keep their offsets in all later formats, so any version of Coffer can
  /// distinguish a newer store from a damaged one.
  init(copy bytes: ArraySlice<UInt8>) throws {
    guard bytes.count == Layout.envelopeCopyByteCount, bytes.starts(with: Self.magic) else {
      throw EnvelopeError.wrongMagic
    }
    let checksumStart = bytes.startIndex + Self.checksumOffset
    let checkedEnd = bytes.startIndex + Self.checkedByteCount
    let digest = try bytes[..<checkedEnd].withUnsafeBytes(SHA256.digest)
    guard digest.elementsEqual(bytes[checksumStart...]), bytes[checkedEnd..<checksumStart].isZero else {
      throw EnvelopeError.checksumMismatch
    }

    var reader = ByteReader(bytes[..<checkedEnd])
    do {
      _ = try reader.read(count: Self.magic.count)
      let version: UInt16 = try reader.read()
      try EnvelopeError.check(version, isAtMost: Layout.formatVersion, "format")
      let suite: UInt16 = try reader.read()
      try EnvelopeError.check(suite, isAtMost: Layout.suite, "suite of algorithms")
      let flags: UInt32 = try reader.read()
      try EnvelopeError.check(flags, isAtMost: Self.placedFlag, "set of flags")
      isPlaced = flags == Self.placedFlag
      guard version == Layout.formatVersion, suite == Layout.suite else {
        throw EnvelopeError.unreadable("version \(version), suite \(suite)")
      }
      sequence = try reader.read()
      storeID = try Array(reader.read(count: 16))
      created = try reader.read()
      let pageByteCount: UInt32 = try reader.read()
      let reserveByteCount: UInt16 = try reader.read()
      guard pageByteCount == Layout.pageByteCount, reserveByteCount == Layout.reserveByteCount else {
        throw EnvelopeError.unreadable("page size \(pageByteCount), reserve \(reserveByteCount)")
      }
      let slotCount: UInt8 = try reader.read()
      let epochCount: UInt8 = try reader.read()
      guard (1...[Slot].maximumCount).contains(Int(slotCount)),
        (1...Self.maximumEpochCount).contains(Int(epochCount))
      else { throw EnvelopeError.unreadable("\(slotCount) slots, \(epochCount) epochs") }
      slots = try (0..<slotCount).map { _ in try Slot(encoded: Self.record(from: &reader)) }
      epochs = try (0..<epochCount).map { _ in try Epoch(encoded: Self.record(from: &reader)) }
      guard Set(slots.map(\.id)).count == slots.count, Set(epochs.map(\.number)).count == epochs.count else {
        throw EnvelopeError.unreadable("a slot or an epoch occurs twice")
      }
      succession = try Succession(encoded: reader.read(count: Succession.byteCount))
      authenticated = Array(bytes[..<reader.position])
      mac = try Array(reader.read(count: SHA256.byteCount))
      guard bytes[reader.position..<checkedEnd].isZero else {
        throw EnvelopeError.unreadable("padding")
      }
    } catch is ByteReader.Overrun {
      throw EnvelopeError.unreadable("a record extends past the end")
    }
  }

  private static func record(from reader: inout ByteReader) throws -> ArraySlice<UInt8> {
    let count: UInt16 = try reader.read()
    return try reader.read(count: Int(count))
  }
}

// MARK: - Opening

extension Envelope {
  /// Checks the MAC over everything that was read.
  func verify(rootKey: SecretBytes) throws {
    guard try isAuthentic(under: rootKey) else {
      throw StorageError.damaged(part: "envelope", reason: "it was changed by someone without the key")
    }
  }

  private static func mac(of bytes: [UInt8], rootKey: SecretBytes, storeID: [UInt8]) throws -> [UInt8] {
    let key = try HKDF.deriveKey(from: rootKey, salt: storeID, info: Array("coffer v1 envelope MAC".utf8), count: 32)
    return try bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
  }

  /// The root key from the first slot that `source` opens, and the slot key that opens that slot again.
  func open(_ source: KeySource) throws -> RootKey {
    let opened = try slots.open(source, owner: storeID) { try verify(rootKey: $0) }
    return RootKey(key: opened.key, slotID: opened.slotID, slotKey: opened.slotKey)
  }

  /// The root key of this envelope, given that of an earlier one; the same unless it was replaced.
  ///
  /// A slot alone vouches for nothing: its record of an earlier envelope still opens, and wraps a root key that everyone
  /// knows who had a slot then. Only a holder of the earlier root key can name its successor.
  ///
  /// Modelled in `Documentation/Models/RootKey.pml`.
  ///
  /// - Parameter source: Where the earlier key came from, if it can be read again: it may have a new slot by now.
  /// - Throws: `StorageError.wrongKey` when the slot opened then is gone, or now has another secret;
  ///   `.rootKeyUnverified` when the root key is another one, and not the successor of the earlier one.
  func follow(_ earlier: RootKey, source: KeySource?, path: String) throws -> RootKey {
    if try isAuthentic(under: earlier.key) { return earlier }
    let new = try reopen(earlier, source: source)
    guard let succession, try succession.names(new.key, after: earlier.key, storeID: storeID) else {
      throw StorageError.rootKeyUnverified(path: path)
    }
    return new
  }

  private func reopen(_ earlier: RootKey, source: KeySource?) throws -> RootKey {
    if let slot = slots.first(where: { $0.id == earlier.slotID }), slot.salt == earlier.slotKey.salt {
      let key = try slot.unwrap(with: earlier.slotKey, owner: storeID)
      try verify(rootKey: key)
      return RootKey(key: key, slotID: earlier.slotID, slotKey: earlier.slotKey)
    }
    guard let source else { throw StorageError.wrongKey }
    return try open(source)
  }

  /// The keys of all epochs, given those of an earlier envelope of the same root key or its predecessor.
  ///
  /// Every record must unwrap, and an epoch's key never changes: an envelope that was put together from parts of others
  /// does not pass.
  func keys(rootKey: SecretBytes, known: [EpochKeys]) throws -> [EpochKeys] {
    try keys(rootKey: rootKey).map { keys in
      guard let old = known.first(where: { $0.number == keys.number }) else { return keys }
      guard old.isEqual(to: keys) else {
        throw StorageError.damaged(part: "envelope", reason: "it has another key for epoch \(keys.number)")
      }
      return old
    }
  }

  func isAuthentic(under rootKey: SecretBytes) throws -> Bool {
    ConstantTime.isEqual(try Self.mac(of: authenticated, rootKey: rootKey, storeID: storeID), mac)
  }
}

/// The root key of a store, and the slot it came from.
///
/// The slot's key stays in memory, so that this process can continue when another one replaces the root key.
struct RootKey: Sendable {
  let key: SecretBytes
  let slotID: UInt8
  let slotKey: SlotKey
}

/// The envelope of a new store: fresh keys, one slot, one epoch.
package struct NewEnvelope {
  let envelope: Envelope
  let rootKey: RootKey
  /// Both copies; a store without pages consists of nothing else.
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
