internal import COpenSSL

/// The message authentication code HMAC (RFC 2104) with SHA-256.
public enum HMACSHA256 {
  /// Computes the 32-byte code of `bytes` under `key`.
  ///
  /// Compare codes with ``ConstantTime``, never with `==`.
  ///
  /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  public static func authenticate(_ bytes: UnsafeRawBufferPointer, key: SecretBytes) throws -> [UInt8] {
    let hmac = try Algorithms.hmac.get()
    return try AlgorithmContext.withFallback(OpenSSLLibrary.context) { try authenticate(bytes, key: key, by: hmac) }
  }

  static func authenticate(
    _ bytes: UnsafeRawBufferPointer, key: SecretBytes, by hmac: Algorithm
  ) throws -> [UInt8] {
    guard let context = EVP_MAC_CTX_new(hmac.object) else {
      throw CryptoError.failure(of: "EVP_MAC_CTX_new")
    }
    // Wipes its copy of the key.
    defer { EVP_MAC_CTX_free(context) }

    let initialized = key.withUnsafeBytes { key in
      OpenSSLParameter.withList([OpenSSLParameter("digest", .name("SHA256"))]) {
        EVP_MAC_init(context, key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count, $0)
      }
    }
    guard initialized == 1 else { throw CryptoError.failure(of: "EVP_MAC_init") }

    if bytes.count > 0 {
      guard EVP_MAC_update(context, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count) == 1 else {
        throw CryptoError.failure(of: "EVP_MAC_update")
      }
    }
    return try [UInt8](unsafeUninitializedCapacity: SHA256.byteCount) { code, initializedCount in
      guard EVP_MAC_final(context, code.baseAddress, &initializedCount, SHA256.byteCount) == 1 else {
        initializedCount = 0
        throw CryptoError.failure(of: "EVP_MAC_final")
      }
    }
  }
}
