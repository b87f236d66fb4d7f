/// XAES-256-GCM (C2SP `XAES-256-GCM.md`) with one key: authenticated encryption with nonces long enough to draw at random.
///
/// Each message gets a key of its own, derived from `key` and the first half of its 24-byte nonce with AES-CMAC (the
/// counter mode of NIST SP 800-108), and is sealed with AES-256-GCM under the second half. With nonces drawn by
/// ``RandomSource``, 2^80 messages are safe under one key.
///
///     let cipher = try XAES256GCM(key: key)
///     let nonce = try RandomSource.bytes(count: XAES256GCM.nonceByteCount)
///     let sealed = try cipher.seal(secret, nonce: nonce, additionalData: Array("slot 1".utf8))
///     let opened = try cipher.open(sealed, nonce: nonce, additionalData: Array("slot 1".utf8))
///
/// **Never use a nonce twice** under one key: that reveals both messages and allows forgeries under the derived key.
///
/// Not thread-safe, and therefore not `Sendable`: it keeps OpenSSL contexts, so that sealing a page needs no
/// allocation and no look-up. Make one for each file handle.
public final class XAES256GCM {
  /// Length of a key.
  public static let keyByteCount = 32

  /// Length of a nonce.
  public static let nonceByteCount = 24

  /// Length of a tag.
  public static let tagByteCount = 16

  private let keyCipher: AES256BlockCipher
  private let messageCipher: AES256GCM

  /// The CMAC subkey K1, followed by room for a message key.
  private let memory: LockedMemory
  private let subkey: UnsafeMutableRawPointer
  private let messageKey: UnsafeMutableRawPointer

  /// Prepares for sealing and opening under `key`.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when `key` is not 32 bytes long;
  ///   ``CryptoError/unavailable(algorithm:)`` or ``CryptoError/openSSL(function:reason:)``.
  public init(key: SecretBytes) throws {
    guard key.count == Self.keyByteCount else {
      throw CryptoError.invalidParameter("XAES-256-GCM takes a key of \(Self.keyByteCount) bytes, not \(key.count)")
    }
    keyCipher = try AES256BlockCipher(key: key, .encrypt)
    messageCipher = try AES256GCM()
    memory = LockedMemory(byteCount: AES256BlockCipher.blockByteCount + AES256GCM.keyByteCount)
    subkey = memory.start
    messageKey = memory.start + AES256BlockCipher.blockByteCount

    try keyCipher.transform(subkey, count: AES256BlockCipher.blockByteCount)
    Self.double(subkey)
  }

  // MARK: - Pages

  /// Encrypts `count` bytes into `output` and writes their 16-byte tag.
  ///
  /// - Parameters:
  ///   - input: The plaintext.
  ///   - count: The number of bytes; with zero, the tag covers the additional data alone.
  ///   - output: Room for `count` bytes: either `input` itself, or without overlap.
  ///   - tag: Room for 16 bytes outside `output`.
  ///   - nonce: 24 bytes, never used before under this key.
  ///   - additionalData: Data to authenticate but not encrypt.
  /// - Throws: ``CryptoError/invalidParameter(_:)`` above 2^31 - 1 bytes; ``CryptoError/openSSL(function:reason:)``,
  ///   and the contents of `output` are then undefined.
  public func seal(
    _ input: UnsafeRawPointer, count: Int, into output: UnsafeMutableRawPointer, tag: UnsafeMutableRawPointer,
    nonce: UnsafeRawPointer, additionalData: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    defer { forgetMessageKey() }
    try deriveMessageKey(nonce)
    try messageCipher.seal(
      input, count: count, into: output, tag: tag,
      key: messageKey, nonce: nonce + Self.derivationByteCount, additionalData: additionalData)
  }

  /// Authenticates and decrypts `count` bytes into `output`.
  ///
  /// - Parameters:
  ///   - input: The ciphertext.
  ///   - count: The number of bytes, without the tag.
  ///   - output: Room for `count` bytes: either `input` itself, or without overlap.
  ///   - tag: The 16 bytes that came with the ciphertext.
  ///   - nonce: The 24 bytes it was sealed with.
  ///   - additionalData: The additional data it was sealed with.
  /// - Throws: ``CryptoError/authenticationFailed`` when anything differs from what was sealed; `output` is then all
  ///   zero, so opening in place loses the ciphertext. ``CryptoError/invalidParameter(_:)`` above 2^31 - 1 bytes;
  ///   ``CryptoError/openSSL(function:reason:)``.
  public func open(
    _ input: UnsafeRawPointer, count: Int, into output: UnsafeMutableRawPointer, tag: UnsafeRawPointer,
    nonce: UnsafeRawPointer, additionalData: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    defer { forgetMessageKey() }
    try deriveMessageKey(nonce)
    try messageCipher.open(
      input, count: count, into: output, tag: tag,
      key: messageKey, nonce: nonce + Self.derivationByteCount, additionalData: additionalData)
  }

  // MARK: - Derivation

  /// The part of the nonce that goes into the message key; the rest is the nonce of AES-256-GCM.
  private static let derivationByteCount = nonceByteCount - AES256GCM.nonceByteCount

  /// Computes the message key: AES_K(M1 xor K1) ‖ AES_K(M2 xor K1), with Mi = 00 0i 58 00 ‖ nonce[0..<12].
  ///
  /// That is AES-CMAC of two messages of one block each. Written out because OpenSSL's CMAC object costs several
  /// allocations a message, and both blocks fit one call.
  private func deriveMessageKey(_ nonce: UnsafeRawPointer) throws(CryptoError) {
    let subkey0 = subkey.load(as: UInt32.self)
    let subkey1 = subkey.load(fromByteOffset: 4, as: UInt32.self)
    let subkey2 = subkey.load(fromByteOffset: 8, as: UInt64.self)
    // The same in both blocks. Words keep the order of bytes in memory, so the machine's byte order does not matter.
    let word1 = nonce.loadUnaligned(as: UInt32.self) ^ subkey1
    let word2 = nonce.loadUnaligned(fromByteOffset: 4, as: UInt64.self) ^ subkey2

    messageKey.storeBytes(of: UInt32(bigEndian: 0x0001_5800) ^ subkey0, as: UInt32.self)
    messageKey.storeBytes(of: word1, toByteOffset: 4, as: UInt32.self)
    messageKey.storeBytes(of: word2, toByteOffset: 8, as: UInt64.self)
    messageKey.storeBytes(of: UInt32(bigEndian: 0x0002_5800) ^ subkey0, toByteOffset: 16, as: UInt32.self)
    messageKey.storeBytes(of: word1, toByteOffset: 20, as: UInt32.self)
    messageKey.storeBytes(of: word2, toByteOffset: 24, as: UInt64.self)
    try keyCipher.transform(messageKey, count: AES256GCM.keyByteCount)
  }

  private func forgetMessageKey() {
    Memory.wipe(UnsafeMutableRawBufferPointer(start: messageKey, count: AES256GCM.keyByteCount))
  }

  /// Multiplies a 16-byte block by x in GF(2^128), in the byte order of CMAC (NIST SP 800-38B, 6.1).
  static func double(_ block: UnsafeMutableRawPointer) {
    let high = UInt64(bigEndian: block.load(as: UInt64.self))
    let low = UInt64(bigEndian: block.load(fromByteOffset: 8, as: UInt64.self))
    // All ones or all zeros, depending on the first bit: no branch on a secret.
    let carry = 0 &- (high >> 63)
    block.storeBytes(of: (high << 1 | low >> 63).bigEndian, as: UInt64.self)
    block.storeBytes(of: (low << 1 ^ (carry & 0x87)).bigEndian, toByteOffset: 8, as: UInt64.self)
  }
}
