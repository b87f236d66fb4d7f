/// The key derivation function HKDF (RFC 5869) with SHA-256, for keys made from keys.
///
/// It is not for passphrases, which can be guessed; those go through ``PasswordHash``.
public enum HKDF {
  /// The most that one derivation gives: 255 blocks (RFC 5869, 2.3).
  static let maximumByteCount = 255 * SHA256.byteCount

  /// Extracts and expands `inputKey` into a key of `count` bytes.
  ///
  /// Keys for different purposes take different `info`. An empty `salt` counts as 32 zero bytes, as the RFC has it.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when `inputKey` is empty or `count` is outside 1...8,160;
  ///   ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  public static func deriveKey(
    from inputKey: SecretBytes, salt: [UInt8], info: [UInt8], count: Int
  ) throws -> SecretBytes {
    guard inputKey.count > 0 else {
      // The RFC allows it, but what comes out is a constant that everyone can compute.
      throw CryptoError.invalidParameter("HKDF needs an input key of at least one byte")
    }
    guard (1...maximumByteCount).contains(count) else {
      throw CryptoError.invalidParameter("HKDF-SHA256 gives 1 to \(maximumByteCount) bytes, not \(count)")
    }
    return try inputKey.withUnsafeBytes { inputKey in
      try salt.withUnsafeBytes { salt in
        try info.withUnsafeBytes { info in
          var parameters = [
            OpenSSLParameter("digest", .name("SHA256")),
            OpenSSLParameter("key", .bytes(inputKey)),
          ]
          // Left out when empty: how OpenSSL takes an empty octet string has changed between versions.
          if salt.count > 0 { parameters.append(OpenSSLParameter("salt", .bytes(salt))) }
          if info.count > 0 { parameters.append(OpenSSLParameter("info", .bytes(info))) }
          return try KeyDerivation.derive(count: count, with: Algorithms.hkdf, parameters)
        }
      }
    }
  }
}
