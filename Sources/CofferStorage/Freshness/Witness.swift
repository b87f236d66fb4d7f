import CofferCrypto

/// What is remembered of a store outside of it: the newest state that its disk is known to have.
///
/// FORMAT.md, "Witness", has its bytes.
package struct Witness: Equatable, Sendable {
  /// The sequence of the envelope.
  package var envelope: UInt64
  /// The number of the last commit.
  package var commit: Int64
  /// The link of its row in the change log, which tells it, and all before it, from others of the same number.
  package var link: ChangeLink

  package init(envelope: UInt64, commit: Int64, link: ChangeLink) {
    self.envelope = envelope
    self.commit = commit
    self.link = link
  }

  private static let magic = Array("coffer/1 witness".utf8)
  private static let headByteCount = 40
  private static let checksumByteCount = 8
  /// The size of a sealed witness.
  package static let byteCount =
    headByteCount + XAES256GCM.overheadByteCount + 8 + ChangeLink.byteCount + checksumByteCount

  // MARK: Bytes

  /// The additional data: magic, store id and envelope sequence, which also stand in plaintext.
  private static func head(_ storeID: [UInt8], _ envelope: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(magic)
    writer.append(storeID)
    writer.append(envelope)
    return writer.bytes
  }

  private static func cipher(_ storeID: [UInt8], _ rootKey: SecretBytes) throws -> XAES256GCM {
    try XAES256GCM(
      key: HKDF.deriveKey(from: rootKey, salt: storeID, info: Array("coffer v1 witness".utf8), count: 32))
  }

  private static func checksum(_ bytes: ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
    try bytes.withUnsafeBytes(SHA256.digest).prefix(checksumByteCount)
  }

  func sealed(storeID: [UInt8], rootKey: SecretBytes) throws -> [UInt8] {
    var text = ByteWriter()
    text.append(commit)
    text.append(link.bytes)
    let head = Self.head(storeID, envelope)
    var bytes = head
    try text.bytes.withUnsafeBytes {
      try Self.cipher(storeID, rootKey).seal($0, additionalData: head, appendingTo: &bytes)
    }
    return bytes + (try Self.checksum(bytes[...]))
  }

  /// What a sealed witness says.
  package enum Reading: Equatable, Sendable {
    /// Of this store.
    case whole(Witness)
    /// Of this store under another root key; the sequence is not authenticated.
    case otherRootKey(envelope: UInt64)
    /// Of another store.
    case otherStore
    /// Cut off, damaged, or no witness.
    case unreadable
  }

  static func read(_ bytes: [UInt8], storeID: [UInt8], rootKey: SecretBytes) throws -> Reading {
    guard bytes.count == byteCount, bytes.starts(with: magic),
      try checksum(bytes.dropLast(checksumByteCount)).elementsEqual(bytes.suffix(checksumByteCount))
    else { return .unreadable }
    guard bytes[16..<32].elementsEqual(storeID) else { return .otherStore }
    let envelope = bytes[32..<headByteCount].reduce(0) { $0 << 8 | UInt64($1) }
    do {
      let sealed = bytes[headByteCount..<(byteCount - checksumByteCount)]
      return try cipher(storeID, rootKey).withOpened(sealed, additionalData: Array(bytes[..<headByteCount])) { text in
        let commit = Int64(bigEndian: text.loadUnaligned(as: Int64.self))
        guard let link = ChangeLink(UnsafeRawBufferPointer(rebasing: text[8...])) else { return .unreadable }
        return .whole(Witness(envelope: envelope, commit: commit, link: link))
      }
    } catch CryptoError.authenticationFailed {
      return .otherRootKey(envelope: envelope)
    }
  }
}

extension Store {
  /// The sequence of the envelope as it is known here.
  package var envelopeSequence: UInt64 { keys.sequence }

  /// A witness as it is kept outside of the store.
  package func seal(_ witness: Witness) throws -> [UInt8] {
    try witness.sealed(storeID: storeID, rootKey: rootKey)
  }

  /// What a sealed witness says of this store.
  package func read(witness bytes: [UInt8]) throws -> Witness.Reading {
    try Witness.read(bytes, storeID: storeID, rootKey: rootKey)
  }
}
