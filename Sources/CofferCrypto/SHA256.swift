internal import COpenSSL

/// The hash function SHA-256 (FIPS 180-4).
public enum SHA256 {
  /// Length of a digest.
  public static let byteCount = 32

  /// Hashes `bytes` in one go.
  ///
  /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  public static func digest(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
    let algorithm = try Algorithms.sha256.get().object
    return try [UInt8](unsafeUninitializedCapacity: byteCount) { digest, initializedCount in
      guard EVP_Digest(bytes.baseAddress, bytes.count, digest.baseAddress, nil, algorithm, nil) == 1 else {
        throw CryptoError.failure(of: "EVP_Digest")
      }
      initializedCount = byteCount
    }
  }
}
