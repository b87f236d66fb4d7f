/// A key, passphrase or other secret: the one type in which Coffer holds them.
///
/// The bytes are written once, in `init`, into pages of their own, which are locked where the system allows, left out of
/// core dumps (Linux), and wiped when the last reference goes. They never pass through `Array`, `Data` or `String`, whose
/// copies nobody wipes, unless they come from there. A secret prints as its length alone.
///
///     let key = try SecretBytes.random(count: 32)
///     let cipher = try XAES256GCM(key: key)
///
/// There is no `==`, so that nothing compares secrets byte by byte without meaning to; see ``isEqual(to:)``.
public final class SecretBytes: @unchecked Sendable {
  // @unchecked: nothing writes to the memory after `init`, so any number of threads may read it.
  private let memory: LockedMemory

  /// Makes a secret of `count` bytes that `body` writes in place.
  ///
  /// - Parameters:
  ///   - count: Zero or more.
  ///   - body: Gets the bytes, all zero, and must not keep the pointer.
  /// - Throws: What `body` throws; whatever it wrote has been wiped then.
  public init(count: Int, initializingWith body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    memory = LockedMemory(byteCount: count)
    try body(memory.bytes)
  }

  /// Makes a secret of a copy of `bytes`; wiping the original is the caller's.
  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  /// Makes a secret of the UTF-8 bytes of a text.
  ///
  ///     let passphrase = SecretBytes(copying: "correct horse battery staple")
  ///
  /// The price: the text itself cannot be wiped. It stays in the memory of the process, and may go to swap or a core dump,
  /// until its place is used for something else; so may what it was read from. Where bytes can be had, read them in place with
  /// ``init(count:initializingWith:)``.
  public convenience init(copying text: String) {
    self.init(count: text.utf8.count) { $0.copyBytes(from: text.utf8) }
  }

  /// Makes a secret of `count` random bytes, fit for a key.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the system has no randomness to give.
  public static func random(count: Int) throws -> SecretBytes {
    try SecretBytes(count: count) { try SystemRandom.fill($0, from: .keys) }
  }

  /// How many bytes there are; this is not secret.
  public var count: Int { memory.bytes.count }

  /// Whether the system keeps the bytes out of swap.
  var isLocked: Bool { memory.isLocked }

  /// Lends the bytes for the time of `body`, which must not keep the pointer.
  ///
  /// The address is never null, also when there are no bytes.
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    // Without this the last reference could go, and the pages with it, while `body` still reads.
    try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(memory.bytes)) }
  }

  /// Whether `other` holds the same bytes, in a time that depends on the length alone.
  public func isEqual(to other: SecretBytes) -> Bool {
    withUnsafeBytes { mine in other.withUnsafeBytes { ConstantTime.isEqual(mine, $0) } }
  }

  /// Makes a secret of a part of this one, in pages of its own.
  ///
  /// - Precondition: `range` lies within `0..<count`.
  public func slice(_ range: Range<Int>) -> SecretBytes {
    precondition(
      range.lowerBound >= 0 && range.upperBound <= count,
      "Slice a secret within its bounds: \(range) is not in 0..<\(count).")
    return withUnsafeBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
