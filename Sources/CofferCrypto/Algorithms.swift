internal import COpenSSL

/// The OpenSSL algorithms used here, each looked up once for the process.
///
/// A fetch walks the providers under a lock and costs microseconds, more than sealing a page (see "Performance" in
/// `crypto(7)`). The objects are immutable, shared by all threads, and never freed. A failed lookup is remembered as well:
/// providers are configured before the first use of OpenSSL.
enum Algorithms {
  typealias Lookup = Result<Algorithm, CryptoError>

  static let aes256ECB = lookUp("AES-256-ECB") { EVP_CIPHER_fetch(nil, $0, nil) }
  static let aes256GCM = lookUp("AES-256-GCM") { EVP_CIPHER_fetch(nil, $0, nil) }
  static let sha256 = lookUp("SHA256") { EVP_MD_fetch(nil, $0, nil) }
  static let hmac = lookUp("HMAC") { EVP_MAC_fetch(nil, $0, nil) }
  static let hkdf = lookUp("HKDF") { EVP_KDF_fetch(nil, $0, nil) }
  static let scrypt = lookUp("SCRYPT") { EVP_KDF_fetch(nil, $0, nil) }
  static let pbkdf2 = lookUp("PBKDF2") { EVP_KDF_fetch(nil, $0, nil) }
  static let argon2id = lookUp("ARGON2ID") { EVP_KDF_fetch(nil, $0, nil) }

  private static func lookUp(_ name: String, _ fetch: (UnsafePointer<CChar>) -> OpaquePointer?) -> Lookup {
    OpenSSLLibrary.setUp
    guard let object = name.withCString(fetch) else {
      ERR_clear_error()
      return .failure(.unavailable(algorithm: name))
    }
    return .success(Algorithm(object: object))
  }
}

/// A fetched `EVP_CIPHER`, `EVP_MD`, `EVP_MAC` or `EVP_KDF`.
struct Algorithm: @unchecked Sendable {
  // @unchecked: OpenSSL never changes a fetched algorithm, and counts references to it atomically.
  let object: OpaquePointer
}
