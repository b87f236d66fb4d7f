import CofferCrypto

/// What the former root key says of the present one, written when the root key is replaced.
///
/// Slots keep their salts and secrets over a new root key, so a slot's record from before still opens, and gives a key
/// that every former holder of a slot knows. A program that holds a root key therefore follows an envelope to another
/// one only if the former key vouches for it.
///
/// FORMAT.md, "Succession", has its bytes.
struct Succession: Equatable, Sendable {
  /// A code under a key derived from the former root key, over a commitment to the present one.
  private let code: [UInt8]
  /// The key that sealed records of this store (see `Witness`) under the former root key, wrapped under the present one:
  /// so a record from before the replacement is still understood.
  private let witnessKey: WrappedKey

  static let byteCount = SHA256.byteCount + WrappedKey.byteCount
  /// In the place of a succession, in a store whose root key was never replaced.
  static let none = [UInt8](repeating: 0, count: byteCount)

  init(from former: SecretBytes, to rootKey: SecretBytes, storeID: [UInt8]) throws {
    code = try Self.code(former: former, rootKey: rootKey, storeID: storeID)
    witnessKey = try WrappedKey(
      wrapping: Witness.key(rootKey: former, storeID: storeID),
      under: Self.wrappingKey(rootKey: rootKey, storeID: storeID), context: storeID)
  }

  // MARK: Bytes

  var encoded: [UInt8] { code + witnessKey.encoded }

  /// - Returns: nil if there is none.
  init?(encoded bytes: ArraySlice<UInt8>) throws {
    guard !bytes.isZero else { return nil }
    guard !bytes.prefix(SHA256.byteCount).isZero, !bytes.dropFirst(SHA256.byteCount).isZero else {
      throw EnvelopeError.unreadable("succession")
    }
    var reader = ByteReader(bytes)
    code = try Array(reader.read(count: SHA256.byteCount))
    witnessKey = try WrappedKey(from: &reader)
  }

  // MARK: Verifying

  /// Whether `rootKey` is the successor that a holder of `former` named.
  func names(_ rootKey: SecretBytes, after former: SecretBytes, storeID: [UInt8]) throws -> Bool {
    ConstantTime.isEqual(try Self.code(former: former, rootKey: rootKey, storeID: storeID), code)
  }

  /// The key of records that were made under the former root key.
  func formerWitnessKey(rootKey: SecretBytes, storeID: [UInt8]) throws -> SecretBytes {
    do {
      return try witnessKey.unwrap(under: Self.wrappingKey(rootKey: rootKey, storeID: storeID), context: storeID)
    } catch CryptoError.authenticationFailed {
      throw StorageError.damaged(part: "envelope", reason: "the key of former records does not decrypt")
    }
  }

  private static func code(former: SecretBytes, rootKey: SecretBytes, storeID: [UInt8]) throws -> [UInt8] {
    func derive(_ key: SecretBytes, _ info: String) throws -> SecretBytes {
      try HKDF.deriveKey(from: key, salt: storeID, info: Array(info.utf8), count: 32)
    }
    let commitment = try derive(rootKey, "coffer v1 root commitment").withUnsafeBytes(Array.init)
    let key = try derive(former, "coffer v1 root succession")
    return try (storeID + commitment).withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
  }

  private static func wrappingKey(rootKey: SecretBytes, storeID: [UInt8]) throws -> SecretBytes {
    try HKDF.deriveKey(from: rootKey, salt: storeID, info: Array("coffer v1 witness wrapping".utf8), count: 32)
  }
}
