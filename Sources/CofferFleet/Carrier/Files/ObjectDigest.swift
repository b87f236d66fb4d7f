import CofferCrypto

/// A SHA-256 hash.
struct ObjectDigest: Hashable, Sendable {
  fileprivate let words: FourWords

  static let byteCount = SHA256.byteCount

  /// The hash of `bytes`.
  init(of bytes: some Collection<UInt8>) throws {
    let digest = try bytes.withContiguousStorageIfAvailable { try SHA256.digest(UnsafeRawBufferPointer($0)) }
    self.init(bytes: try digest ?? Array(bytes).withUnsafeBytes { try SHA256.digest($0) })
  }

  /// Wraps a hash that was computed before.
  ///
  /// - Precondition: `bytes` has ``byteCount`` bytes.
  init(bytes: [UInt8]) {
    precondition(bytes.count == Self.byteCount, "A SHA-256 has 32 bytes.")
    words = bytes.withUnsafeBytes { $0.loadUnaligned(as: FourWords.self) }
  }

  var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }
}

/// A hash of a set of objects, updated as single objects are added and removed: the sum of their hashes.
///
/// It distinguishes states of a folder. It does not resist an attacker who chooses objects so that two states collide; the
/// signed head does.
struct ObjectSetHash: Hashable, Sendable {
  private var sum = FourWords()

  mutating func add(_ name: String, _ digest: ObjectDigest) throws { sum.combine(try Self.term(name, digest), &+) }
  mutating func remove(_ name: String, _ digest: ObjectDigest) throws { sum.combine(try Self.term(name, digest), &-) }

  private static func term(_ name: String, _ digest: ObjectDigest) throws -> FourWords {
    try ObjectDigest(of: digest.bytes + Array(name.utf8)).words
  }

  var text: String {
    [sum.a, sum.b, sum.c, sum.d].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}

/// Four words, added one by one.
///
/// Not `SIMD4`, which wants an alignment of 32 bytes: frames of async functions have 16, and were freed in the wrong order
/// (Swift 6.3).
struct FourWords: Hashable, BitwiseCopyable {
  var a: UInt64 = 0
  var b: UInt64 = 0
  var c: UInt64 = 0
  var d: UInt64 = 0

  mutating func combine(_ other: FourWords, _ operation: (UInt64, UInt64) -> UInt64) {
    self = FourWords(
      a: operation(a, other.a), b: operation(b, other.b), c: operation(c, other.c), d: operation(d, other.d))
  }
}
