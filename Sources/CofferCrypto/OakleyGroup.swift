internal import COpenSSL

/// Diffie-Hellman in the second Oakley group (RFC 2409, 6.2), as clients of the Secret Service use it.
///
/// Its 1,024 bits are weak: it keeps secrets out of the logs of a bus, not from someone who can compute a lot.
package enum OakleyGroup {
  /// Length of a public key and of an agreed secret.
  package static let byteCount = 128
  /// Length of a private key: twice the strength of the keys that are derived.
  package static let privateByteCount = 32

  /// The public key for a private key.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)``.
  package static func publicKey(of privateKey: SecretBytes) throws -> [UInt8] {
    try power(of: [2], privateKey).withUnsafeBytes { Array($0) }
  }

  /// The shared secret of the owners of both keys, padded to its full length.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` for a public key that is none, or gives a secret that everyone knows;
  ///   ``CryptoError/openSSL(function:reason:)``.
  package static func agree(_ privateKey: SecretBytes, with publicKey: [UInt8]) throws -> SecretBytes {
    guard publicKey.count <= byteCount else { throw CryptoError.invalidParameter("the public key is too long") }
    return try power(of: publicKey, privateKey, checksBase: true)
  }

  /// The base to the power of the exponent, modulo the prime, in a time that does not depend on the exponent.
  private static func power(
    of base: [UInt8], _ exponent: SecretBytes, checksBase: Bool = false
  ) throws -> SecretBytes {
    guard let context = BN_CTX_secure_new() else { throw CryptoError.failure(of: "BN_CTX_secure_new") }
    defer { BN_CTX_free(context) }
    let numbers = (
      BN_get_rfc2409_prime_1024(nil), BN_bin2bn(base, Int32(base.count), nil), BN_secure_new(), BN_secure_new()
    )
    defer {
      BN_free(numbers.0)
      BN_free(numbers.1)
      BN_clear_free(numbers.2)
      BN_clear_free(numbers.3)
    }
    guard let prime = numbers.0, let base = numbers.1, let power = numbers.2, let result = numbers.3 else {
      throw CryptoError.failure(of: "BN_new")
    }
    if checksBase {
      // 0, 1 and p - 1 have powers that everyone can guess.
      guard let limit = BN_dup(prime) else { throw CryptoError.failure(of: "BN_dup") }
      defer { BN_free(limit) }
      guard BN_sub_word(limit, 1) == 1, BN_cmp(base, limit) < 0, BN_cmp(base, BN_value_one()) > 0 else {
        throw CryptoError.invalidParameter("the public key is none of this group")
      }
    }
    let isRead = exponent.withUnsafeBytes {
      BN_bin2bn($0.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32($0.count), power) != nil
    }
    guard isRead, BN_mod_exp_mont_consttime(result, base, power, prime, context, nil) == 1 else {
      throw CryptoError.failure(of: "BN_mod_exp_mont_consttime")
    }
    return try SecretBytes(count: byteCount) { bytes in
      guard BN_bn2binpad(result, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(byteCount)) == byteCount
      else { throw CryptoError.failure(of: "BN_bn2binpad") }
    }
  }
}
