internal import COpenSSL

/// AES-256 on single blocks, with a fixed key: a building block, never a way to encrypt data.
///
/// Not thread-safe: a context holds the state of one operation.
struct AES256BlockCipher: ~Copyable {
  static let keyByteCount = 32
  static let blockByteCount = 16

  private let context: CipherContext
  private let direction: CipherContext.Direction

  /// Prepares the cipher for `key`, which OpenSSL copies.
  ///
  /// - Precondition: `key` is 32 bytes long.
  init(key: SecretBytes, _ direction: CipherContext.Direction) throws(CryptoError) {
    precondition(key.count == Self.keyByteCount, "Check the length of a key before creating a block cipher.")
    let context = try CipherContext(Algorithms.aes256ECB, direction)
    let status = key.withUnsafeBytes { key in
      let key = key.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return switch direction {
      case .encrypt: EVP_EncryptInit_ex2(context.object, nil, key, nil, nil)
      case .decrypt: EVP_DecryptInit_ex2(context.object, nil, key, nil, nil)
      }
    }
    // Padding would hold back the last block until the message ends; without it, blocks come out as they go in.
    guard status == 1, EVP_CIPHER_CTX_set_padding(context.object, 0) == 1 else {
      throw .failure(of: "EVP_CipherInit_ex2")
    }
    self.context = context
    self.direction = direction
  }

  /// Enciphers or deciphers `count` bytes in place, each block of 16 independently.
  func transform(_ blocks: UnsafeMutableRawPointer, count: Int) throws(CryptoError) {
    let bytes = blocks.assumingMemoryBound(to: UInt8.self)
    var written: Int32 = 0
    let status =
      switch direction {
      case .encrypt: EVP_EncryptUpdate(context.object, bytes, &written, bytes, Int32(count))
      case .decrypt: EVP_DecryptUpdate(context.object, bytes, &written, bytes, Int32(count))
      }
    guard status == 1, written == count else { throw .failure(of: "EVP_CipherUpdate") }
  }
}
