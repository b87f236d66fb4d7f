internal import COpenSSL

/// The extendable-output function SHAKE128 (FIPS 202).
public enum SHAKE128 {
  /// Fills `output` from a hash of `bytes`.
  ///
  /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  public static func fill(_ output: UnsafeMutableRawBufferPointer, from bytes: [UInt8]) throws {
    let algorithm = try Algorithms.shake128.get().object
    guard let context = EVP_MD_CTX_new() else { throw CryptoError.failure(of: "EVP_MD_CTX_new") }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestInit_ex2(context, algorithm, nil) == 1, EVP_DigestUpdate(context, bytes, bytes.count) == 1,
      EVP_DigestFinalXOF(context, output.baseAddress?.assumingMemoryBound(to: UInt8.self), output.count) == 1
    else { throw CryptoError.failure(of: "EVP_DigestFinalXOF") }
  }
}
