internal import COpenSSL

/// The signature scheme Ed25519 (RFC 8032).
///
///     let seed = try SecretBytes.random(count: Ed25519.seedByteCount)
///     let signature = try Ed25519.sign(message, seed: seed)
///     let isGenuine = try Ed25519.isValid(signature, of: message, publicKey: Ed25519.publicKey(seed: seed))
///
/// Begin each message with its purpose, so that a signature cannot be reused for another purpose.
public enum Ed25519 {
  /// Length of a seed, which is the private key.
  public static let seedByteCount = 32
  /// Length of a public key.
  public static let publicKeyByteCount = 32
  /// Length of a signature.
  public static let signatureByteCount = 64

  private static let name: StaticString = "ED25519"

  /// The public key for a seed.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when the seed is not 32 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public static func publicKey(seed: SecretBytes) throws -> [UInt8] {
    try CurveKey.privateKey(seed).publicKey(name)
  }

  /// Signs a message.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when the seed is not 32 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public static func sign(_ message: [UInt8], seed: SecretBytes) throws -> [UInt8] {
    try CurveKey.privateKey(seed).withOpenSSLKey(name) { key in
      let context = try makeContext()
      defer { EVP_MD_CTX_free(context) }
      guard EVP_DigestSignInit_ex(context, nil, nil, OpenSSLLibrary.context?.object, nil, key, nil) == 1 else {
        throw CryptoError.failure(of: "EVP_DigestSignInit_ex")
      }
      return try [UInt8](unsafeUninitializedCapacity: signatureByteCount) { signature, count in
        count = signatureByteCount
        guard EVP_DigestSign(context, signature.baseAddress, &count, message, message.count) == 1 else {
          count = 0
          throw CryptoError.failure(of: "EVP_DigestSign")
        }
      }
    }
  }

  /// Whether a signature of a message was made with the seed of a public key.
  ///
  /// Returns false for a signature of the wrong length.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when the public key is not 32 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public static func isValid(_ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]) throws -> Bool {
    guard signature.count == signatureByteCount else { return false }
    return try CurveKey.publicKey(publicKey).withOpenSSLKey(name) { key in
      let context = try makeContext()
      defer { EVP_MD_CTX_free(context) }
      guard EVP_DigestVerifyInit_ex(context, nil, nil, OpenSSLLibrary.context?.object, nil, key, nil) == 1 else {
        throw CryptoError.failure(of: "EVP_DigestVerifyInit_ex")
      }
      let isValid = EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
      // A wrong signature leaves an error behind.
      if !isValid { ERR_clear_error() }
      return isValid
    }
  }

  private static func makeContext() throws -> OpaquePointer {
    guard let context = EVP_MD_CTX_new() else { throw CryptoError.failure(of: "EVP_MD_CTX_new") }
    return context
  }
}
