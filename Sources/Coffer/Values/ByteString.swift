#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A name or key compared by its UTF-8 bytes, as SQLite compares it.
///
/// Swift's `String ==` compares by canonical equivalence: "é" composed and decomposed are equal to Swift, and two rows
/// to SQLite. Whatever keeps names or keys in memory uses this type.
package struct ByteString: Hashable, Comparable, Sendable {
  package let string: String

  @inline(__always)
  package init(_ string: String) {
    self.string = string.isContiguousUTF8 ? string : string.contiguous
  }

  /// Lends the bytes for the time of `body`.
  @inline(__always)
  private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    string.withUTF8Bytes { body(UnsafeRawBufferPointer($0)) }
  }

  /// Compares the bytes that both have, as memcmp(3) does.
  @inline(__always)
  private static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    // The buffer of an empty string may have no address.
    guard let first = a.baseAddress, let second = b.baseAddress else { return 0 }
    return memcmp(first, second, min(a.count, b.count))
  }

  package static func == (a: Self, b: Self) -> Bool {
    a.isSameString(as: b) || a.hasSameBytes(as: b)
  }

  /// Whether both are one string, or a short one that lies in itself: two words tell, and no call.
  @inline(__always)
  private func isSameString(as other: Self) -> Bool {
    // Where an address has 32 bits, a string is smaller.
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

  /// A hash for tables of this process.
  var keyHash: UInt64 {
    withBytes { KeyHash.hash($0.assumingMemoryBound(to: UInt8.self), seed: Self.seed) }
  }

  /// One word for the hasher, which takes longer over bytes.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(keyHash)
  }

  private static let seed = UInt64.random(in: .min ... .max)
}

extension String {
  /// Lends the UTF-8 bytes for the time of `body`.
  ///
  /// `withUTF8` wants a variable of its own, for which a reference is counted.
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

  /// The text of UTF-8; nil where the bytes are none.
  ///
  /// The standard library's `init(validating:as:)` goes through generic code, ten times as slow.
  package init?(validating bytes: UnsafeRawBufferPointer) {
    self.init(decoding: bytes, as: UTF8.self)
    // What is no UTF-8 has been replaced, and so changed.
    let isSame = withUTF8 { text in
      guard text.count == bytes.count else { return false }
      guard let decoded = text.baseAddress, let start = bytes.baseAddress else { return true }
      return memcmp(decoded, start, bytes.count) == 0
    }
    guard isSame else { return nil }
  }
}
