internal import COpenSSL

/// An `EVP_CIPHER_CTX` with one owner; its key schedule is wiped when it ends (`EVP_CIPHER_CTX_free`).
///
/// Contexts are made once and kept: allocating one costs as much as enciphering half a kilobyte.
struct CipherContext: ~Copyable {
  /// The direction of a context; OpenSSL prepares its key schedule for only one.
  enum Direction {
    case encrypt
    case decrypt
  }

  let object: OpaquePointer

  /// Makes a context for `algorithm`, without a key yet.
  ///
  /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  init(_ algorithm: Algorithms.Lookup, _ direction: Direction) throws(CryptoError) {
    let algorithm = try algorithm.get().object
    guard let object = EVP_CIPHER_CTX_new() else { throw .failure(of: "EVP_CIPHER_CTX_new") }
    let status =
      switch direction {
      case .encrypt: EVP_EncryptInit_ex2(object, algorithm, nil, nil, nil)
      case .decrypt: EVP_DecryptInit_ex2(object, algorithm, nil, nil, nil)
      }
    guard status == 1 else {
      EVP_CIPHER_CTX_free(object)
      throw .failure(of: "EVP_CipherInit_ex2")
    }
    self.object = object
  }

  deinit {
    EVP_CIPHER_CTX_free(object)
  }
}
