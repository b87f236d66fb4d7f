internal import COpenSSL

/// This module's only access to OpenSSL's keys on Curve25519 (`EVP_PKEY-X25519(7)`).
enum CurveKey {
  /// Length of a private key, a public key and an agreed secret.
  static let byteCount = 32

  case privateKey(SecretBytes)
  case publicKey([UInt8])

  /// Lends the key as an OpenSSL object; OpenSSL's copy is wiped afterwards.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when the key is not 32 bytes long;
  ///   ``CryptoError/openSSL(function:reason:)``.
  func withOpenSSLKey<R>(_ algorithm: StaticString, _ body: (OpaquePointer) throws -> R) throws -> R {
    try OpenSSLLibrary.setUp()
    let context = OpenSSLLibrary.context
    return try AlgorithmContext.withFallback(context) {
      guard let key = try make(algorithm, in: context?.object) else {
        throw CryptoError.failure(of: "EVP_PKEY_new_raw_key")
      }
      // Wipes a private key.
      defer { EVP_PKEY_free(key) }
      return try body(key)
    }
  }

  private func make(_ algorithm: StaticString, in context: OpaquePointer?) throws -> OpaquePointer? {
    func check(_ count: Int) throws {
      guard count == Self.byteCount else {
        throw CryptoError.invalidParameter("\(algorithm) takes a key of \(Self.byteCount) bytes, not \(count)")
      }
    }
    let name = UnsafeRawPointer(algorithm.utf8Start).assumingMemoryBound(to: CChar.self)
    switch self {
    case .privateKey(let bytes):
      try check(bytes.count)
      return bytes.withUnsafeBytes {
        EVP_PKEY_new_raw_private_key_ex(
          context, name, nil, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
      }
    case .publicKey(let bytes):
      try check(bytes.count)
      return EVP_PKEY_new_raw_public_key_ex(context, name, nil, bytes, bytes.count)
    }
  }

  /// The public key for a private key.
  func publicKey(_ algorithm: StaticString) throws -> [UInt8] {
    try withOpenSSLKey(algorithm) { key in
      try [UInt8](unsafeUninitializedCapacity: Self.byteCount) { bytes, count in
        count = Self.byteCount
        guard EVP_PKEY_get_raw_public_key(key, bytes.baseAddress, &count) == 1 else {
          count = 0
          throw CryptoError.failure(of: "EVP_PKEY_get_raw_public_key")
        }
      }
    }
  }
}
