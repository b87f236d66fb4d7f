/// The key derivation function HKDF (RFC 5869) with SHA-256, for deriving keys from keys.
///
/// Not for passphrases, which can be guessed; use ``PasswordHash`` for those.
public enum HKDF {
  /// The longest output of one derivation: 255 blocks (RFC 5869, 2.3).
  static let maximumByteCount = 255 * SHA256.byteCount

  /// Extracts and expands `inputKey` into a key of `count` bytes.
  ///
  /// Use a different `info` for each purpose. An empty `salt` counts as 32 zero bytes, as in the RFC.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when `inputKey` is empty or `count` is outside 1...8,160;
  ///   ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  public static func deriveKey(
    from inputKey: SecretBytes, salt: [UInt8], info: [UInt8], count: Int
  ) throws -> SecretBytes {
    guard inputKey.count > 0 else {
      // The RFC allows it, but the output would be a constant that anyone can compute.
      throw CryptoError.invalidParameter("HKDF needs an input key of at least one byte")
    }
    guard (1...maximumByteCount).contains(count) else {
      throw CryptoError.invalidParameter("HKDF-SHA256 returns 1 to \(maximumByteCount) bytes, not \(count)")
    }
    return try inputKey.withUnsafeBytes { inputKey in
      try salt.withUnsafeBytes { salt in
        try info.withUnsafeBytes { info in
          var parameters = [
            OpenSSLParameter("digest", .name("SHA256")),
            OpenSSLParameter("key", .bytes(inputKey)),
          ]
          // Omitted when empty: OpenSSL's handling of an empty octet string has changed between versions.
          if salt.count > 0 { parameters.append(OpenSSLParameter("salt", .bytes(salt))) }
          if info.count > 0 { parameters.append(OpenSSLParameter("info", .bytes(info))) }
          return try KeyDerivation.derive(count: count, with: Algorithms.hkdf, parameters)
        }
      }
    }
  }
}
