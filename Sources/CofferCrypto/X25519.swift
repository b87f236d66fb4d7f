internal import COpenSSL

/// The key agreement X25519 (RFC 7748).
///
/// The agreed secret is not a key yet: derive one with ``HKDF``, with both public keys among its inputs.
public enum X25519 {
  /// Length of a private key, a public key and an agreed secret.
  public static let keyByteCount = CurveKey.byteCount

  private static let name: StaticString = "X25519"

  /// The public key for a private key, which is any 32 random bytes.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when the key is not 32 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public static func publicKey(of privateKey: SecretBytes) throws -> [UInt8] {
    try CurveKey.privateKey(privateKey).publicKey(name)
  }

  /// The shared secret of the owners of both keys: a private key and the other side's public key.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)``, also for a public key of small order, whose shared secret
  ///   would be zero; ``CryptoError/invalidParameter(_:)`` when a key is not 32 bytes long.
  public static func agree(_ privateKey: SecretBytes, with publicKey: [UInt8]) throws -> SecretBytes {
    try CurveKey.privateKey(privateKey).withOpenSSLKey(name) { own in
      try CurveKey.publicKey(publicKey).withOpenSSLKey(name) { other in
        guard let context = EVP_PKEY_CTX_new_from_pkey(OpenSSLLibrary.context?.object, own, nil) else {
          throw CryptoError.failure(of: "EVP_PKEY_CTX_new_from_pkey")
        }
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, other) == 1 else {
          throw CryptoError.failure(of: "EVP_PKEY_derive_set_peer")
        }
        return try SecretBytes(count: keyByteCount) { secret in
          var count = secret.count
          let bytes = secret.baseAddress?.assumingMemoryBound(to: UInt8.self)
          guard EVP_PKEY_derive(context, bytes, &count) == 1, count == secret.count else {
            throw CryptoError.failure(of: "EVP_PKEY_derive")
          }
        }
      }
    }
  }
}
