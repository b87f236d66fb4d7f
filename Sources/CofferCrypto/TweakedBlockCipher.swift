/// AES-256 as a tweakable block cipher: each tweak acts like another key.
///
/// The construction is XEX (Rogaway, "Efficient Instantiations of Tweakable Blockciphers and Refinements to Modes OCB
/// and PMAC", 2004) with two independent keys and no multiplication, because each tweak has one block: T =
/// AES_K2(tweak), C = AES_K1(P xor T) xor T, where the tweak is 8 zero bytes and a big-endian `UInt64`.
///
/// It keeps the length and adds no tag: equal blocks under equal tweaks have equal ciphertexts, and a changed block
/// deciphers to noise. Use it only where there is no room for a tag and the noise is detected elsewhere.
///
/// Not thread-safe, and therefore not `Sendable`. Make one for each file handle.
public final class TweakedBlockCipher {
  /// Length of a key: K1, then K2.
  public static let keyByteCount = 64

  /// Length of a block.
  public static let blockByteCount = 16

  private let encipher: AES256BlockCipher
  private let decipher: AES256BlockCipher
  private let tweakCipher: AES256BlockCipher

  /// Room for T.
  private let mask: LockedMemory

  /// Prepares the cipher for `key`, which is K1 ‖ K2.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)`` when `key` is not 64 bytes long or its halves are equal, in which
  ///   case the proof does not hold; ``CryptoError/unavailable(algorithm:)`` or
  ///   ``CryptoError/openSSL(function:reason:)``.
  public init(key: SecretBytes) throws {
    guard key.count == Self.keyByteCount else {
      throw CryptoError.invalidParameter(
        "the tweaked cipher takes a key of \(Self.keyByteCount) bytes, not \(key.count)")
    }
    let key1 = key.slice(0..<AES256BlockCipher.keyByteCount)
    let key2 = key.slice(AES256BlockCipher.keyByteCount..<Self.keyByteCount)
    guard !key1.isEqual(to: key2) else {
      throw CryptoError.invalidParameter("the two halves of the tweaked cipher's key must differ")
    }
    encipher = try AES256BlockCipher(key: key1, .encrypt)
    decipher = try AES256BlockCipher(key: key1, .decrypt)
    tweakCipher = try AES256BlockCipher(key: key2, .encrypt)
    mask = LockedMemory(byteCount: Self.blockByteCount)
  }

  /// Enciphers the 16 bytes at `block` in place.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)``; the contents of `block` are then undefined.
  public func encrypt(_ block: UnsafeMutableRawPointer, tweak: UInt64) throws(CryptoError) {
    try makeMask(tweak)
    addMask(to: block)
    try encipher.transform(block, count: Self.blockByteCount)
    addMask(to: block)
  }

  /// Deciphers the 16 bytes at `block` in place.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)``; the contents of `block` are then undefined.
  public func decrypt(_ block: UnsafeMutableRawPointer, tweak: UInt64) throws(CryptoError) {
    try makeMask(tweak)
    addMask(to: block)
    try decipher.transform(block, count: Self.blockByteCount)
    addMask(to: block)
  }

  private func makeMask(_ tweak: UInt64) throws(CryptoError) {
    mask.start.storeBytes(of: 0, as: UInt64.self)
    mask.start.storeBytes(of: tweak.bigEndian, toByteOffset: 8, as: UInt64.self)
    try tweakCipher.transform(mask.start, count: Self.blockByteCount)
  }

  /// Computes `block` xor T; the block need not be aligned.
  private func addMask(to block: UnsafeMutableRawPointer) {
    let first = block.loadUnaligned(as: UInt64.self) ^ mask.start.load(as: UInt64.self)
    let second =
      block.loadUnaligned(fromByteOffset: 8, as: UInt64.self) ^ mask.start.load(fromByteOffset: 8, as: UInt64.self)
    block.storeBytes(of: first, as: UInt64.self)
    block.storeBytes(of: second, toByteOffset: 8, as: UInt64.self)
  }
}
