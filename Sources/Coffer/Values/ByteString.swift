#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A name or key compared by its UTF-8 bytes, as SQLite compares it.
///
/// Swift's `String ==` compares by canonical equivalence: composed and decomposed "é" are equal to Swift, but two rows to
/// SQLite. All names and keys kept in memory use this type.
package struct ByteString: Hashable, Comparable, Sendable {
  package let string: String

  @inline(__always)
  package init(_ string: String) {
    self.string = string.isContiguousUTF8 ? string : string.contiguous
  }

  /// Lends the bytes to `body`.
  @inline(__always)
  private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    string.withUTF8Bytes { body(UnsafeRawBufferPointer($0)) }
  }

  /// Compares the common length, as memcmp(3) does.
  @inline(__always)
  private static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    // The buffer of an empty string may have no address.
    guard let first = a.baseAddress, let second = b.baseAddress else { return 0 }
    return memcmp(first, second, min(a.count, b.count))
  }

  package static func == (a: Self, b: Self) -> Bool {
    a.isSameString(as: b) || a.hasSameBytes(as: b)
  }

  /// Whether both have the same storage, or are the same small string: comparing two words tells, without a call.
  @inline(__always)
  private func isSameString(as other: Self) -> Bool {
    // With 32-bit addresses, a string is smaller.
    MemoryLayout<String>.size == MemoryLayout<(UInt64, UInt64)>.size
      && unsafeBitCast(string, to: (UInt64, UInt64).self) == unsafeBitCast(other.string, to: (UInt64, UInt64).self)
  }

  private func hasSameBytes(as other: Self) -> Bool {
    withBytes { a in other.withBytes { b in a.count == b.count && Self.compare(a, b) == 0 } }
  }

  package static func < (a: Self, b: Self) -> Bool {
    a.withBytes { a in
      b.withBytes { b in
        let order = compare(a, b)
        return order == 0 ? a.count < b.count : order < 0
      }
    }
  }

  /// A hash for in-memory tables of this process.
  var keyHash: UInt64 {
    withBytes { KeyHash.hash($0.assumingMemoryBound(to: UInt8.self), seed: Self.seed) }
  }

  /// Feeds the hasher one word: hashing bytes takes longer.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(keyHash)
  }

  private static let seed = UInt64.random(in: .min ... .max)
}

extension String {
  /// Lends the UTF-8 bytes to `body`.
  ///
  /// `withUTF8` needs a mutable copy, which counts a reference.
  @inline(__always)
  func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
    if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
    var string = self
    return try string.withUTF8(body)
  }

  fileprivate var contiguous: String {
    var string = self
    string.makeContiguousUTF8()
    return string
  }

  /// The text of UTF-8 bytes; nil if they are not valid UTF-8.
  ///
  /// The standard library's `init(validating:as:)` uses generic code, and is ten times as slow.
  package init?(validating bytes: UnsafeRawBufferPointer) {
    self.init(decoding: bytes, as: UTF8.self)
    // Invalid UTF-8 has been replaced, and so differs.
    let isSame = withUTF8 { text in
      guard text.count == bytes.count else { return false }
      guard let decoded = text.baseAddress, let start = bytes.baseAddress else { return true }
      return memcmp(decoded, start, bytes.count) == 0
    }
    guard isSame else { return nil }
  }
}
