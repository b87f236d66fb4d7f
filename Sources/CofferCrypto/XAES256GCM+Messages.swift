/// For small messages, such as wrapped keys: ciphertext and tag in one array.
extension XAES256GCM {
  /// Encrypts a secret; returns the ciphertext followed by its tag.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when `nonce` is not 24 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public func seal(_ plaintext: SecretBytes, nonce: [UInt8], additionalData: [UInt8]) throws -> [UInt8] {
    let sealedCount = plaintext.count + Self.tagByteCount
    return try [UInt8](unsafeUninitializedCapacity: sealedCount) { sealed, initializedCount in
      // The tag guarantees room, so the address is not nil; secrets have an address, see `SecretBytes`.
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

  /// Authenticates and decrypts the result of ``seal(_:nonce:additionalData:)``.
  ///
  /// - Throws: ``CryptoError/authenticationFailed`` when anything differs from what was sealed, or `sealed` is too
  ///   short to hold a tag; ``CryptoError/invalidParameter(_:)`` when `nonce` is not 24 bytes long;
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

// MARK: - Objects

/// For messages that carry their nonce: nonce, ciphertext and tag in one array.
extension XAES256GCM {
  /// The number of bytes that sealing adds.
  public static let overheadByteCount = nonceByteCount + tagByteCount

  /// Appends a sealed object to `output`, under a fresh nonce.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)``.
  public func seal(
    _ plaintext: UnsafeRawBufferPointer, additionalData: [UInt8], appendingTo output: inout [UInt8]
  ) throws {
    let start = output.count
    output += try RandomSource.bytes(count: Self.nonceByteCount)
    output.append(contentsOf: repeatElement(0, count: plaintext.count + Self.tagByteCount))
    try output.withUnsafeMutableBytes { output in
      // After the reserved nonce bytes, so never nil.
      let nonce = output.baseAddress! + start
      let text = nonce + Self.nonceByteCount
      try additionalData.withUnsafeBytes {
        try seal(
          plaintext.baseAddress ?? UnsafeRawPointer(text), count: plaintext.count, into: text,
          tag: text + plaintext.count, nonce: nonce, additionalData: $0)
      }
    }
  }

  /// Authenticates and decrypts a sealed object, and lends the plaintext for the duration of `body`; it is wiped
  /// afterwards.
  ///
  /// - Throws: ``CryptoError/authenticationFailed`` when anything differs from what was sealed;
  ///   ``CryptoError/openSSL(function:reason:)``; errors of `body`.
  public func withOpened<R>(
    _ sealed: ArraySlice<UInt8>, additionalData: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> R
  ) throws -> R {
    let count = sealed.count - Self.overheadByteCount
    guard count >= 0 else { throw CryptoError.authenticationFailed }
    let plaintext = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, count), alignment: 16)
    defer {
      Memory.wipe(plaintext)
      plaintext.deallocate()
    }
    try sealed.withUnsafeBytes { sealed in
      // Long enough for a nonce, so never nil.
      let nonce = sealed.baseAddress!
      let text = nonce + Self.nonceByteCount
      try additionalData.withUnsafeBytes {
        try open(
          text, count: count, into: plaintext.baseAddress!, tag: text + count, nonce: nonce, additionalData: $0)
      }
    }
    return try body(UnsafeRawBufferPointer(rebasing: plaintext[..<count]))
  }
}
