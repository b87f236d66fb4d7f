/// For small messages, such as wrapped keys: ciphertext and tag in one array.
extension XAES256GCM {
  /// Encrypts a secret; gives the ciphertext with its tag behind.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when `nonce` is not 24 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public func seal(_ plaintext: SecretBytes, nonce: [UInt8], additionalData: [UInt8]) throws -> [UInt8] {
    let sealedCount = plaintext.count + Self.tagByteCount
    return try [UInt8](unsafeUninitializedCapacity: sealedCount) { sealed, initializedCount in
      // A tag is always there to make room for; secrets have an address, see `SecretBytes`.
      let output = UnsafeMutableRawPointer(sealed.baseAddress!)
      try withUnsafeBytes(ofNonce: nonce) { nonce in
        try additionalData.withUnsafeBytes { additionalData in
          try plaintext.withUnsafeBytes { plaintext in
            try seal(
              plaintext.baseAddress!, count: plaintext.count, into: output, tag: output + plaintext.count,
              nonce: nonce, additionalData: additionalData)
          }
        }
      }
      initializedCount = sealedCount
    }
  }

  /// Checks and decrypts what ``seal(_:nonce:additionalData:)`` gave.
  ///
  /// - Throws: ``CryptoError/authenticationFailed`` when anything differs from what was sealed, or `sealed` is too short
  ///   to hold a tag; ``CryptoError/invalidParameter(_:)`` when `nonce` is not 24 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public func open(_ sealed: [UInt8], nonce: [UInt8], additionalData: [UInt8]) throws -> SecretBytes {
    let count = sealed.count - Self.tagByteCount
    guard count >= 0 else { throw CryptoError.authenticationFailed }
    return try withUnsafeBytes(ofNonce: nonce) { nonce in
      try additionalData.withUnsafeBytes { additionalData in
        try sealed.withUnsafeBytes { sealed in
          try SecretBytes(count: count) { plaintext in
            // A tag is there, so `sealed` is not empty; secrets have an address, see `SecretBytes`.
            let input = sealed.baseAddress!
            try open(
              input, count: count, into: plaintext.baseAddress!, tag: input + count,
              nonce: nonce, additionalData: additionalData)
          }
        }
      }
    }
  }

  private func withUnsafeBytes<R>(ofNonce nonce: [UInt8], _ body: (UnsafeRawPointer) throws -> R) throws -> R {
    guard nonce.count == Self.nonceByteCount else {
      throw CryptoError.invalidParameter(
        "XAES-256-GCM takes a nonce of \(Self.nonceByteCount) bytes, not \(nonce.count)")
    }
    return try nonce.withUnsafeBytes { try body($0.baseAddress!) }
  }
}
