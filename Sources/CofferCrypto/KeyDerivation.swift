internal import COpenSSL

/// This module's only access to OpenSSL's key derivation functions (`EVP_KDF(3)`).
enum KeyDerivation {
  /// Derives `count` bytes straight into locked memory.
  ///
  /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  static func derive(
    count: Int, with algorithm: Algorithms.Lookup, _ parameters: [OpenSSLParameter]
  ) throws -> SecretBytes {
    let algorithm = try algorithm.get()
    return try AlgorithmContext.withFallback(OpenSSLLibrary.context) {
      try derive(count: count, with: algorithm, parameters)
    }
  }

  private static func derive(
    count: Int, with algorithm: Algorithm, _ parameters: [OpenSSLParameter]
  ) throws -> SecretBytes {
    guard let context = EVP_KDF_CTX_new(algorithm.object) else {
      throw CryptoError.failure(of: "EVP_KDF_CTX_new")
    }
    // Wipes its copies of the key, password and salt.
    defer { EVP_KDF_CTX_free(context) }

    return try SecretBytes(count: count) { output in
      let status = OpenSSLParameter.withList(parameters) {
        EVP_KDF_derive(context, output.baseAddress?.assumingMemoryBound(to: UInt8.self), output.count, $0)
      }
      guard status == 1 else { throw CryptoError.failure(of: "EVP_KDF_derive") }
    }
  }
}
