import CofferCrypto
import CofferStorage

/// The layout of a sealed value (`FORMAT.md`, Sealed values).
package enum SealedBytes {
  private static let generationByteCount = 4
  static let headerByteCount = generationByteCount + XAES256GCM.nonceByteCount
  /// How much longer a sealed value is than its plaintext.
  static let overhead = headerByteCount + XAES256GCM.tagByteCount

  /// The number of the vault key that a value was sealed under; nil if it is too short to be sealed.
  package static func generation(of bytes: UnsafeRawBufferPointer) -> UInt32? {
    guard bytes.count > overhead else { return nil }
    return UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
  }

  /// The place of a value, so that it cannot be opened in another.
  static func additionalData(
    vaultID: [UInt8], _ part: ItemPart, _ key: String, in collection: String
  ) -> [UInt8] {
    var data = Array("coffer/1 sealed".utf8) + vaultID
    for name in [collection, key] {
      data.append(bigEndian: UInt64(name.utf8.count))
      data.append(contentsOf: name.utf8)
    }
    data.append(part == .object ? 1 : 2)
    return data
  }
}

/// One key of a vault, ready for use.
///
/// Unchecked: it is in `VaultKeys`, whose lock protects the cipher.
struct VaultKey: @unchecked Sendable {
  let secret: SecretBytes
  let memory: VaultMemory
  private let vaultID: [UInt8]
  private let generation: UInt32
  private let cipher: XAES256GCM

  init(_ secret: SecretBytes, of record: VaultRecord) throws {
    self.secret = secret
    memory = try VaultMemory(secret, of: record)
    vaultID = record.id
    generation = record.generation
    cipher = try XAES256GCM(
      key: HKDF.deriveKey(from: secret, salt: vaultID, info: Array("coffer v1 sealed value".utf8), count: 32))
  }

  func seal(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String
  ) throws -> StoredValue {
    let header = withUnsafeBytes(of: generation.bigEndian, Array.init)
    let nonce = try RandomSource.bytes(count: XAES256GCM.nonceByteCount)
    let sealed = try cipher.seal(
      value.taggedSecret, nonce: nonce,
      additionalData: SealedBytes.additionalData(vaultID: vaultID, part, key, in: collection))
    return StoredValue(kind: .sealed, bytes: header + nonce + sealed)
  }

  /// - Throws: `CryptoError.authenticationFailed`.
  func open(
    _ sealed: UnsafeRawBufferPointer, _ part: ItemPart, _ key: String, in collection: String
  ) throws -> SecretBytes {
    let count = sealed.count - SealedBytes.overhead
    let data = SealedBytes.additionalData(vaultID: vaultID, part, key, in: collection)
    guard count > 0, let start = sealed.baseAddress else { throw CryptoError.authenticationFailed }
    let ciphertext = start + SealedBytes.headerByteCount
    return try data.withUnsafeBytes { data in
      try SecretBytes(count: count) { plaintext in
        // Protected memory always has an address.
        guard let output = plaintext.baseAddress else { throw CryptoError.authenticationFailed }
        try cipher.open(
          ciphertext, count: count, into: output, tag: ciphertext + count,
          nonce: ciphertext - XAES256GCM.nonceByteCount, additionalData: data)
      }
    }
  }
}

extension StoredValue {
  /// Stands for an unsealed value in a sealed collection, or a sealed value in another: no key opens it, and the original
  /// bytes are not even copied.
  static let misfit = StoredValue(kind: .sealed, bytes: [])

  static let misfitReason = "it is unsealed in a sealed collection, sealed in an unsealed one, or too short"

  /// The plaintext of a sealed value; nil if it is not a valid value.
  init?(opened plaintext: SecretBytes) {
    let found = plaintext.withUnsafeBytes { plaintext -> StoredValue? in
      guard let tag = plaintext.first, let kind = Value.Kind(ofWhole: tag), kind != .sealed else { return nil }
      guard kind != .secret else { return StoredValue(kind: kind, bytes: []) }
      return StoredValue(kind: kind, bytes: Array(plaintext[1...]))
    }
    guard let found else { return nil }
    self = found
    if kind == .secret { bytes = .secret(plaintext.slice(1..<plaintext.count)) }
  }
}
