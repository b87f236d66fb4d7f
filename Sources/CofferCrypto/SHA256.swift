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

extension SHA256 {
  /// Hashes short messages one after another, for which setting up would cost more than hashing; on one thread at a time.
  public final class Hasher {
    private let context: OpaquePointer

    /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
    public init() throws {
      let algorithm = try Algorithms.sha256.get().object
      guard let context = EVP_MD_CTX_new() else { throw CryptoError.failure(of: "EVP_MD_CTX_new") }
      guard EVP_DigestInit_ex2(context, algorithm, nil) == 1 else {
        EVP_MD_CTX_free(context)
        throw CryptoError.failure(of: "EVP_DigestInit_ex2")
      }
      self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    /// The digest of `bytes`, as it lies in memory.
    ///
    /// - Throws: ``CryptoError/openSSL(function:reason:)``.
    public func digest(_ bytes: UnsafeRawBufferPointer) throws -> SIMD4<UInt64> {
      var digest = SIMD4<UInt64>.zero
      let isDone = withUnsafeMutableBytes(of: &digest) { digest in
        EVP_DigestInit_ex2(context, nil, nil) == 1
          && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
          && EVP_DigestFinal_ex(context, digest.bindMemory(to: UInt8.self).baseAddress, nil) == 1
      }
      guard isDone else { throw CryptoError.failure(of: "EVP_Digest") }
      return digest
    }
  }
}
