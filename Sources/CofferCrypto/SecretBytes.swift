/// A key, passphrase or other secret.
///
/// The bytes are written once, in `init`, to their own pages, which are locked where the system allows, left out of
/// core dumps (Linux), and wiped when the last reference is released. They never pass through `Array`, `Data` or
/// `String`, whose copies are not wiped, unless they come from there. A secret prints only its length.
///
///     let key = try SecretBytes.random(count: 32)
///     let cipher = try XAES256GCM(key: key)
///
/// There is no `==`, so that secrets are not compared byte by byte by accident; see ``isEqual(to:)``.
public final class SecretBytes: @unchecked Sendable {
  // @unchecked: nothing writes to the memory after `init`, so any number of threads may read it.
  private let memory: LockedMemory

  /// Makes a secret of `count` bytes that `body` writes in place.
  ///
  /// - Parameters:
  ///   - count: Zero or more.
  ///   - body: Receives the zeroed bytes, and must not keep the pointer.
  /// - Throws: Errors of `body`; the bytes it wrote are wiped.
  public init(count: Int, initializingWith body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    memory = LockedMemory(byteCount: count)
    try body(memory.bytes)
  }

  /// Makes a secret from a copy of `bytes`; wiping the original is up to the caller.
  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  /// Makes a secret from the UTF-8 bytes of a string.
  ///
  ///     let passphrase = SecretBytes(copying: "correct horse battery staple")
  ///
  /// The string itself cannot be wiped. It stays in memory, and may reach swap or a core dump, until that memory is
  /// reused; the same goes for its source. If you can get at the bytes, read them in place with
  /// ``init(count:initializingWith:)``.
  public convenience init(copying text: String) {
    self.init(count: text.utf8.count) { $0.copyBytes(from: text.utf8) }
  }

  /// Makes a secret of `count` random bytes, suitable as a key.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the system has no randomness available.
  public static func random(count: Int) throws -> SecretBytes {
    try SecretBytes(count: count) { try SystemRandom.fill($0, from: .keys) }
  }

  /// The number of bytes; not secret.
  public var count: Int { memory.bytes.count }

  /// Whether the system keeps the bytes out of swap.
  var isLocked: Bool { memory.isLocked }

  /// Lends the bytes for the duration of `body`, which must not keep the pointer.
  ///
  /// The address is never null, even for zero bytes.
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    // Otherwise the last reference could be released, and the pages wiped, while `body` still reads.
    try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(memory.bytes)) }
  }

  /// Whether `other` holds the same bytes, in a time that depends on the length alone.
  public func isEqual(to other: SecretBytes) -> Bool {
    withUnsafeBytes { mine in other.withUnsafeBytes { ConstantTime.isEqual(mine, $0) } }
  }

  /// Copies a part of this secret into a new one, with its own pages.
  ///
  /// - Precondition: `range` lies within `0..<count`.
  public func slice(_ range: Range<Int>) -> SecretBytes {
    precondition(
      range.lowerBound >= 0 && range.upperBound <= count,
      "Slice a secret within its bounds: \(range) is not in 0..<\(count).")
    return withUnsafeBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
  }
}
