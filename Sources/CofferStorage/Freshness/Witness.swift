import CofferCrypto

/// What is remembered of a store outside of it: the newest state that its disk is known to have.
///
/// FORMAT.md, "Witness", has its bytes.
package struct Witness: Sendable {
  /// The sequence of the envelope.
  package var envelope: UInt64
  /// The number of the last commit.
  package var commit: Int64
  /// The link of its row in the change log, which tells it, and all before it, from others of the same number.
  package var link: ChangeLink
  /// The vault's key that was last used; nil if none was.
  package var vault: VaultMemory?

  package init(envelope: UInt64, commit: Int64, link: ChangeLink, vault: VaultMemory? = nil) {
    self.envelope = envelope
    self.commit = commit
    self.link = link
    self.vault = vault
  }

  private static let magic = Array("coffer/1 witness".utf8)
  private static let headByteCount = 40
  private static let checksumByteCount = 8
  /// The size of a sealed witness.
  package static let byteCount =
    headByteCount + XAES256GCM.overheadByteCount + 8 + ChangeLink.byteCount + VaultMemory.byteCount + checksumByteCount

  // MARK: Bytes

  /// The additional data: magic, store id and envelope sequence, which also stand in plaintext.
  private static func head(_ storeID: [UInt8], _ envelope: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(magic)
    writer.append(storeID)
    writer.append(envelope)
    return writer.bytes
  }

  /// The key that seals the records of a store under `rootKey`.
  static func key(rootKey: SecretBytes, storeID: [UInt8]) throws -> SecretBytes {
    try HKDF.deriveKey(from: rootKey, salt: storeID, info: Array("coffer v1 witness".utf8), count: 32)
  }

  private static func checksum(_ bytes: ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
    try bytes.withUnsafeBytes(SHA256.digest).prefix(checksumByteCount)
  }

  func sealed(storeID: [UInt8], key: SecretBytes) throws -> [UInt8] {
    let numbers = withUnsafeBytes(of: commit.bigEndian, Array.init) + link.bytes
    let text = SecretBytes(count: numbers.count + VaultMemory.byteCount) { buffer in
      buffer.copyBytes(from: numbers)
      vault?.write(to: UnsafeMutableRawBufferPointer(rebasing: buffer[numbers.count...]))
    }
    let head = Self.head(storeID, envelope)
    var bytes = head
    try text.withUnsafeBytes { try XAES256GCM(key: key).seal($0, additionalData: head, appendingTo: &bytes) }
    return bytes + (try Self.checksum(bytes[...]))
  }

  /// What a sealed witness says.
  package enum Reading: Sendable {
    /// Of this store; `isFormer` if it was made under the former root key.
    case whole(Witness, isFormer: Bool)
    /// Of this store under a root key that is neither the present one nor the former; the sequence is not authenticated.
    case otherRootKey(envelope: UInt64)
    /// Of another store.
    case otherStore
    /// Cut off, damaged, or no witness.
    case unreadable
  }

  static func read(_ bytes: [UInt8], storeID: [UInt8], current: SecretBytes, former: SecretBytes?) throws -> Reading {
    guard bytes.count == byteCount, bytes.starts(with: magic),
      try checksum(bytes.dropLast(checksumByteCount)).elementsEqual(bytes.suffix(checksumByteCount))
    else { return .unreadable }
    guard bytes[16..<32].elementsEqual(storeID) else { return .otherStore }
    let envelope = bytes[32..<headByteCount].reduce(0) { $0 << 8 | UInt64($1) }
    for (key, isFormer) in [(current, false), (former, true)] {
      guard let key else { continue }
      do {
        let sealed = bytes[headByteCount..<(byteCount - checksumByteCount)]
        return try XAES256GCM(key: key).withOpened(sealed, additionalData: Array(bytes[..<headByteCount])) { text in
          let commit = Int64(bigEndian: text.loadUnaligned(as: Int64.self))
          let rest = UnsafeRawBufferPointer(rebasing: text[8...])
          guard let link = ChangeLink(UnsafeRawBufferPointer(rebasing: rest[..<ChangeLink.byteCount])) else {
            return .unreadable
          }
          let vault = VaultMemory(UnsafeRawBufferPointer(rebasing: rest[ChangeLink.byteCount...]))
          return .whole(
            Witness(envelope: envelope, commit: commit, link: link, vault: vault), isFormer: isFormer)
        }
      } catch CryptoError.authenticationFailed {}
    }
    return .otherRootKey(envelope: envelope)
  }
}

/// Has a record of a store: asked before an envelope that others have written is followed.
package protocol EnvelopeWitness: AnyObject, Sendable {
  /// The record; nil if there is none, or if it is the one that was last found to be of the store as it is open.
  func changedRecord() -> [UInt8]?
  /// Takes note that a record is of the store as it is open.
  func noteVouched(_ record: [UInt8])
}

/// What is remembered of a vault's key: enough to recognize it, and the successor that it vouches for, and not enough to
/// open anything.
package struct VaultMemory: Sendable {
  package let vaultID: [UInt8]
  /// The number of the key.
  package let generation: UInt32
  /// Derived from the key: signs its successor (see `VaultRecord`).
  private let successionKey: SecretBytes

  static let byteCount = VaultRecord.idByteCount + 4 + SHA256.byteCount

  package init(_ key: SecretBytes, of record: VaultRecord) throws {
    vaultID = record.id
    generation = record.generation
    successionKey = try VaultRecord.successionKey(of: key, vaultID: record.id)
  }

  /// Whether `key`, which opens `record`, is the remembered key, or the successor that it vouches for.
  package func vouches(for key: SecretBytes, of record: VaultRecord) throws -> Bool {
    guard record.id == vaultID else { return false }
    if record.generation == generation {
      return try VaultRecord.successionKey(of: key, vaultID: vaultID).isEqual(to: successionKey)
    }
    guard generation < UInt32.max, record.generation == generation + 1 else { return false }
    return try record.isSuccessor(key, under: successionKey)
  }

  /// Whether `record` is of another vault, or of a key before this one.
  package func isLater(than record: VaultRecord) -> Bool {
    record.id != vaultID || record.generation < generation
  }

  /// Whether both are of the same key.
  package func isSame(as other: VaultMemory) -> Bool {
    vaultID == other.vaultID && generation == other.generation && successionKey.isEqual(to: other.successionKey)
  }

  // MARK: Bytes

  /// - Returns: nil for zeros, which stand for nothing.
  init?(_ bytes: UnsafeRawBufferPointer) {
    let count = VaultRecord.idByteCount
    guard bytes.count == Self.byteCount, bytes.contains(where: { $0 != 0 }) else { return nil }
    vaultID = Array(bytes[..<count])
    generation = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: count, as: UInt32.self))
    successionKey = SecretBytes(count: SHA256.byteCount) {
      $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[(count + 4)...]))
    }
  }

  fileprivate func write(to buffer: UnsafeMutableRawBufferPointer) {
    buffer.copyBytes(from: vaultID + withUnsafeBytes(of: generation.bigEndian, Array.init))
    successionKey.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(rebasing: buffer[(vaultID.count + 4)...]).copyMemory(from: $0)
    }
  }
}
