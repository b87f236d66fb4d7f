import CofferCrypto

/// One generation of the keys that pages are sealed under.
package struct Epoch: Equatable, Sendable {
  package let number: UInt32
  /// Milliseconds since 1970.
  package let created: UInt64
  package let wrappedKey: WrappedKey

  private static func header(number: UInt32, created: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(number)
    writer.append(created)
    return writer.bytes
  }

  var encoded: [UInt8] {
    Self.header(number: number, created: created) + wrappedKey.encoded
  }

  init(encoded bytes: ArraySlice<UInt8>) throws {
    var reader = ByteReader(bytes)
    number = try reader.read()
    created = try reader.read()
    wrappedKey = try WrappedKey(from: &reader)
    guard reader.isAtEnd else { throw EnvelopeError.unreadable("epoch length") }
  }

  /// A new epoch under a fresh random key.
  init(number: UInt32, created: UInt64, rootKey: SecretBytes, storeID: [UInt8]) throws {
    try self.init(number: number, created: created, key: .random(count: 32), rootKey: rootKey, storeID: storeID)
  }

  private init(number: UInt32, created: UInt64, key: SecretBytes, rootKey: SecretBytes, storeID: [UInt8]) throws {
    self.number = number
    self.created = created
    wrappedKey = try WrappedKey(
      wrapping: key, under: Self.wrappingKey(rootKey: rootKey, storeID: storeID),
      context: Self.header(number: number, created: created) + storeID)
  }

  /// The same epoch under another root key.
  func rewrapped(from rootKey: SecretBytes, under newRootKey: SecretBytes, storeID: [UInt8]) throws -> Epoch {
    try Epoch(
      number: number, created: created, key: key(rootKey: rootKey, storeID: storeID), rootKey: newRootKey,
      storeID: storeID)
  }

  func keys(rootKey: SecretBytes, storeID: [UInt8]) throws -> EpochKeys {
    try EpochKeys(number: number, epochKey: key(rootKey: rootKey, storeID: storeID), storeID: storeID)
  }

  private func key(rootKey: SecretBytes, storeID: [UInt8]) throws -> SecretBytes {
    do {
      return try wrappedKey.unwrap(
        under: Self.wrappingKey(rootKey: rootKey, storeID: storeID),
        context: Self.header(number: number, created: created) + storeID)
    } catch CryptoError.authenticationFailed {
      throw StorageError.damaged(part: "envelope", reason: "the key of epoch \(number) does not decrypt")
    }
  }

  private static func wrappingKey(rootKey: SecretBytes, storeID: [UInt8]) throws -> SecretBytes {
    try HKDF.deriveKey(from: rootKey, salt: storeID, info: Array("coffer v1 epoch wrapping".utf8), count: 32)
  }
}

/// The keys of one epoch, derived once for a store and shared by its connections.
package struct EpochKeys: Sendable {
  package let number: UInt32
  /// Seals pages, in the database and in the log.
  package let page: SecretBytes
  /// Enciphers salts and checksums in the log's headers; 64 bytes.
  package let logHeader: SecretBytes

  init(number: UInt32, epochKey: SecretBytes, storeID: [UInt8]) throws {
    self.number = number
    page = try HKDF.deriveKey(from: epochKey, salt: storeID, info: Array("coffer v1 page".utf8), count: 32)
    logHeader = try HKDF.deriveKey(from: epochKey, salt: storeID, info: Array("coffer v1 log header".utf8), count: 64)
  }

  /// Whether both come from the same epoch key; compared in constant time.
  func isEqual(to other: EpochKeys) -> Bool { page.isEqual(to: other.page) && logHeader.isEqual(to: other.logHeader) }
}
