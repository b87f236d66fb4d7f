internal import COpenSSL

/// AES-256-GCM (NIST SP 800-38D) with 12-byte nonces and 16-byte tags, for ``XAES256GCM`` to build on.
///
/// The key comes with each message. It is internal because its nonces are too short to be drawn at random for long.
/// Not thread-safe: a context holds the state of one operation.
struct AES256GCM: ~Copyable {
  static let keyByteCount = 32
  static let nonceByteCount = 12
  static let tagByteCount = 16

  private let sealing: CipherContext
  private let opening: CipherContext

  init() throws(CryptoError) {
    // Via constants: a partly initialized noncopyable value cannot be discarded.
    let sealing = try CipherContext(Algorithms.aes256GCM, .encrypt)
    let opening = try CipherContext(Algorithms.aes256GCM, .decrypt)
    self.sealing = sealing
    self.opening = opening
  }

  /// Encrypts `count` bytes and writes their tag; `input` and `output` are the same or do not overlap.
  func seal(
    _ input: UnsafeRawPointer, count: Int, into output: UnsafeMutableRawPointer, tag: UnsafeMutableRawPointer,
    key: UnsafeRawPointer, nonce: UnsafeRawPointer, additionalData: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    let length = try Self.length(count)
    let additionalLength = try Self.length(additionalData.count)
    let context = sealing.object
    var written: Int32 = 0

    guard EVP_EncryptInit_ex2(context, nil, Self.octets(key), Self.octets(nonce), nil) == 1 else {
      throw .failure(of: "EVP_EncryptInit_ex2")
    }
    // A null output marks additional data (`EVP_EncryptInit(3)`, "AEAD Interface"). Empty parts are left out: a null
    // input, which an empty buffer may have, would mean the end of the message.
    if additionalLength > 0 {
      let data = additionalData.baseAddress.map(Self.octets)
      guard EVP_EncryptUpdate(context, nil, &written, data, additionalLength) == 1 else {
        throw .failure(of: "EVP_EncryptUpdate")
      }
    }
    if length > 0 {
      guard EVP_EncryptUpdate(context, Self.octets(output), &written, Self.octets(input), length) == 1,
        written == length
      else {
        throw .failure(of: "EVP_EncryptUpdate")
      }
    }
    // Writes nothing in this mode, and completes the tag.
    guard EVP_EncryptFinal_ex(context, Self.octets(output), &written) == 1,
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagByteCount), tag) == 1
    else {
      throw .failure(of: "EVP_EncryptFinal_ex")
    }
  }

  /// Decrypts `count` bytes and checks their tag; `input` and `output` are the same or do not overlap.
  ///
  /// On any failure after decryption began, `output` has been wiped.
  func open(
    _ input: UnsafeRawPointer, count: Int, into output: UnsafeMutableRawPointer, tag: UnsafeRawPointer,
    key: UnsafeRawPointer, nonce: UnsafeRawPointer, additionalData: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    let length = try Self.length(count)
    let additionalLength = try Self.length(additionalData.count)
    let context = opening.object
    var written: Int32 = 0

    guard EVP_DecryptInit_ex2(context, nil, Self.octets(key), Self.octets(nonce), nil) == 1,
      // OpenSSL copies the tag; its control function always takes a mutable pointer.
      EVP_CIPHER_CTX_ctrl(
        context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagByteCount), UnsafeMutableRawPointer(mutating: tag)) == 1
    else {
      throw .failure(of: "EVP_DecryptInit_ex2")
    }
    if additionalLength > 0 {
      let data = additionalData.baseAddress.map(Self.octets)
      guard EVP_DecryptUpdate(context, nil, &written, data, additionalLength) == 1 else {
        throw .failure(of: "EVP_DecryptUpdate")
      }
    }
    if length > 0 {
      guard EVP_DecryptUpdate(context, Self.octets(output), &written, Self.octets(input), length) == 1,
        written == length
      else {
        Memory.wipe(UnsafeMutableRawBufferPointer(start: output, count: count))
        throw .failure(of: "EVP_DecryptUpdate")
      }
    }
    // Returns 0 for a wrong tag, and writes nothing in this mode. Until here the plaintext in `output` is
    // unauthenticated.
    guard EVP_DecryptFinal_ex(context, Self.octets(output), &written) == 1 else {
      Memory.wipe(UnsafeMutableRawBufferPointer(start: output, count: count))
      ERR_clear_error()
      throw .authenticationFailed
    }
  }

  /// OpenSSL's lengths are `int`.
  private static func length(_ count: Int) throws(CryptoError) -> Int32 {
    guard count >= 0, let length = Int32(exactly: count) else {
      throw .invalidParameter("a message or its additional data may have 0 to \(Int32.max) bytes, not \(count)")
    }
    return length
  }

  private static func octets(_ pointer: UnsafeRawPointer) -> UnsafePointer<UInt8> {
    pointer.assumingMemoryBound(to: UInt8.self)
  }

  private static func octets(_ pointer: UnsafeMutableRawPointer) -> UnsafeMutablePointer<UInt8> {
    pointer.assumingMemoryBound(to: UInt8.self)
  }
}
