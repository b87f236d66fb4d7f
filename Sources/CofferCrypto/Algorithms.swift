internal import COpenSSL

/// The OpenSSL algorithms used here, each looked up once for the process.
///
/// A fetch walks the providers under a lock and costs microseconds, more than sealing a page (see "Performance" in
/// `crypto(7)`). The objects are immutable, shared by all threads, and never freed.
enum Algorithms {
  static let aes128CBC = Lookup("AES-128-CBC") { EVP_CIPHER_fetch($0, $1, nil) }
  static let aes256ECB = Lookup("AES-256-ECB") { EVP_CIPHER_fetch($0, $1, nil) }
  static let aes256GCM = Lookup("AES-256-GCM") { EVP_CIPHER_fetch($0, $1, nil) }
  static let sha256 = Lookup("SHA256") { EVP_MD_fetch($0, $1, nil) }
  static let shake128 = Lookup("SHAKE-128") { EVP_MD_fetch($0, $1, nil) }
  static let hmac = Lookup("HMAC") { EVP_MAC_fetch($0, $1, nil) }
  static let hkdf = Lookup("HKDF") { EVP_KDF_fetch($0, $1, nil) }
  static let scrypt = Lookup("SCRYPT") { EVP_KDF_fetch($0, $1, nil) }
  static let pbkdf2 = Lookup("PBKDF2") { EVP_KDF_fetch($0, $1, nil) }
  static let argon2id = Lookup("ARGON2ID") { EVP_KDF_fetch($0, $1, nil) }

  /// One algorithm; a failed look-up, for example when out of memory, is retried at the next use.
  final class Lookup: Sendable {
    private let name: String
    private let fetch: @Sendable (OpaquePointer?, UnsafePointer<CChar>) -> OpaquePointer?
    private let found = Lock<Algorithm?>(nil)

    init(_ name: String, _ fetch: @escaping @Sendable (OpaquePointer?, UnsafePointer<CChar>) -> OpaquePointer?) {
      self.name = name
      self.fetch = fetch
    }

    /// - Throws: ``CryptoError/unavailable(algorithm:)``, or ``CryptoError/openSSL(function:reason:)`` if OpenSSL
    ///   could not be set up.
    func get() throws(CryptoError) -> Algorithm {
      try OpenSSLLibrary.setUp()
      return try get(from: OpenSSLLibrary.context)
    }

    func get(from context: AlgorithmContext?) throws(CryptoError) -> Algorithm {
      if let algorithm = found.withLock({ $0 }) { return algorithm }
      return try AlgorithmContext.withFallback(context) { () throws(CryptoError) in
        let algorithm = found.withLock { found in
          if found == nil { found = name.withCString { fetch(context?.object, $0) }.map(Algorithm.init) }
          return found
        }
        guard let algorithm else {
          ERR_clear_error()
          throw .unavailable(algorithm: name)
        }
        return algorithm
      }
    }
  }
}

/// A fetched `EVP_CIPHER`, `EVP_MD`, `EVP_MAC` or `EVP_KDF`.
struct Algorithm: @unchecked Sendable {
  // @unchecked: OpenSSL never changes a fetched algorithm, and its reference count is atomic.
  let object: OpaquePointer
}
