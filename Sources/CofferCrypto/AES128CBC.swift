internal import COpenSSL

/// AES-128 in CBC mode with PKCS #7 padding, as clients of the Secret Service use it: it authenticates nothing.
package enum AES128CBC {
  package static let keyByteCount = 16
  package static let blockByteCount = 16

  /// Encrypts under a random initialization vector.
  ///
  /// - Throws: ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  package static func encrypt(_ secret: SecretBytes, key: SecretBytes) throws -> (vector: [UInt8], bytes: [UInt8]) {
    let vector = try RandomSource.bytes(count: blockByteCount)
    let context = try CipherContext(Algorithms.aes128CBC, .encrypt)
    let status = withKey(key) { EVP_EncryptInit_ex2(context.object, nil, $0, vector, nil) }
    guard status == 1 else { throw CryptoError.failure(of: "EVP_EncryptInit_ex2") }
    let bytes = try [UInt8](unsafeUninitializedCapacity: secret.count + blockByteCount) { bytes, count in
      var (written, last): (Int32, Int32) = (0, 0)
      let isWritten = secret.withUnsafeBytes {
        EVP_EncryptUpdate(
          context.object, bytes.baseAddress, &written, $0.baseAddress?.assumingMemoryBound(to: UInt8.self),
          Int32($0.count))
      }
      guard isWritten == 1, EVP_EncryptFinal_ex(context.object, bytes.baseAddress.map { $0 + Int(written) }, &last) == 1
      else {
        count = 0
        throw CryptoError.failure(of: "EVP_EncryptUpdate")
      }
      count = Int(written + last)
    }
    return (vector, bytes)
  }

  /// Decrypts into protected memory.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` for bytes that are no such ciphertext under the key;
  ///   ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  package static func decrypt(_ bytes: SecretBytes, key: SecretBytes, vector: [UInt8]) throws -> SecretBytes {
    guard vector.count == blockByteCount, bytes.count > 0, bytes.count % blockByteCount == 0 else {
      throw CryptoError.invalidParameter("the secret is not encrypted as agreed")
    }
    let context = try CipherContext(Algorithms.aes128CBC, .decrypt)
    let status = withKey(key) { EVP_DecryptInit_ex2(context.object, nil, $0, vector, nil) }
    guard status == 1 else { throw CryptoError.failure(of: "EVP_DecryptInit_ex2") }
    var count = 0
    let padded = try SecretBytes(count: bytes.count + blockByteCount) { buffer in
      let start = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
      var (written, last): (Int32, Int32) = (0, 0)
      let isWritten = bytes.withUnsafeBytes {
        EVP_DecryptUpdate(
          context.object, start, &written, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32($0.count))
      }
      guard isWritten == 1, EVP_DecryptFinal_ex(context.object, start.map { $0 + Int(written) }, &last) == 1 else {
        ERR_clear_error()
        throw CryptoError.invalidParameter("the secret is not encrypted as agreed")
      }
      count = Int(written + last)
    }
    return padded.slice(0..<count)
  }

  private static func withKey<R>(_ key: SecretBytes, _ body: (UnsafePointer<UInt8>?) -> R) -> R {
    precondition(key.count == keyByteCount, "Check the length of a key before using it.")
    return key.withUnsafeBytes { body($0.baseAddress?.assumingMemoryBound(to: UInt8.self)) }
  }
}
