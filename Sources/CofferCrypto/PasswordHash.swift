/// A slow hash that derives a key from a passphrase, with its cost.
///
///     let hash = PasswordHash.scrypt(log2N: 17, r: 8, p: 1)
///     let key = try hash.deriveKey(from: passphrase, salt: salt, count: 32)
///
/// The cost is checked against a ceiling before anything is allocated, so a crafted file can neither exhaust memory
/// nor keep a processor busy for hours. The caller must enforce a minimum: how weak is too weak depends on where the
/// cost was read.
public enum PasswordHash: Equatable, Sendable {
  /// scrypt (RFC 7914): N = 2^log2N rounds over blocks of 128·r bytes, p times; about 128·r·N bytes of memory.
  case scrypt(log2N: UInt8, r: UInt32, p: UInt32)

  /// PBKDF2 (RFC 8018, 5.2) with HMAC-SHA-512: costs time but no memory; for where FIPS 140 is required.
  case pbkdf2HMACSHA512(iterations: UInt32)

  /// Argon2id version 1.3 (RFC 9106), looked up at run time: available from OpenSSL 3.2 on.
  ///
  /// Lanes are computed one after the other.
  case argon2id(memoryKiB: UInt32, iterations: UInt32, lanes: UInt32)

  /// Whether the linked OpenSSL offers Argon2id.
  public static var isArgon2idAvailable: Bool {
    (try? Algorithms.argon2id.get()) != nil
  }

  /// Derives a key of `count` bytes, taking as much time and memory as the cost says.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when the cost or a size is out of range;
  ///   ``CryptoError/unavailable(algorithm:)`` when this OpenSSL lacks the algorithm;
  ///   ``CryptoError/openSSL(function:reason:)``, also when memory runs out.
  public func deriveKey(from password: SecretBytes, salt: [UInt8], count: Int) throws -> SecretBytes {
    try checkCost()
    try checkSizes(saltCount: salt.count, keyCount: count)
    return try password.withUnsafeBytes { password in
      try salt.withUnsafeBytes { salt in
        switch self {
        case .scrypt(let log2N, let r, let p):
          try KeyDerivation.derive(
            count: count, with: Algorithms.scrypt,
            [
              OpenSSLParameter("pass", .bytes(password)),
              OpenSSLParameter("salt", .bytes(salt)),
              OpenSSLParameter("n", .number(1 << UInt64(log2N))),
              OpenSSLParameter("r", .number(UInt64(r))),
              OpenSSLParameter("p", .number(UInt64(p))),
              // OpenSSL would stop at 32 MiB; `checkCost` applies this ceiling with the same formula.
              OpenSSLParameter("maxmem_bytes", .number(Self.maximumMemory)),
            ])
        case .pbkdf2HMACSHA512(let iterations):
          try KeyDerivation.derive(
            count: count, with: Algorithms.pbkdf2,
            [
              OpenSSLParameter("digest", .name("SHA512")),
              OpenSSLParameter("pass", .bytes(password)),
              OpenSSLParameter("salt", .bytes(salt)),
              OpenSSLParameter("iter", .number(UInt64(iterations))),
            ])
        case .argon2id(let memoryKiB, let iterations, let lanes):
          try KeyDerivation.derive(
            count: count, with: Algorithms.argon2id,
            [
              OpenSSLParameter("pass", .bytes(password)),
              OpenSSLParameter("salt", .bytes(salt)),
              OpenSSLParameter("memcost", .number(UInt64(memoryKiB))),
              OpenSSLParameter("iter", .number(UInt64(iterations))),
              OpenSSLParameter("lanes", .number(UInt64(lanes))),
            ])
        }
      }
    }
  }
}
