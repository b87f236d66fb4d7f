import CofferCrypto

/// A SHA-256.
struct ObjectDigest: Hashable, Sendable {
  fileprivate let words: SIMD4<UInt64>

  static let byteCount = SHA256.byteCount

  /// The hash of `bytes`.
  init(of bytes: some Collection<UInt8>) throws {
    let digest = try bytes.withContiguousStorageIfAvailable { try SHA256.digest(UnsafeRawBufferPointer($0)) }
    self.init(bytes: try digest ?? Array(bytes).withUnsafeBytes { try SHA256.digest($0) })
  }

  /// A hash that was computed before.
  ///
  /// - Precondition: There are ``byteCount`` of them.
  init(bytes: [UInt8]) {
    precondition(bytes.count == Self.byteCount, "A SHA-256 has 32 bytes.")
    words = bytes.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
  }

  var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }
}

/// A hash over a set of objects that can be kept up as single ones come and go: the sum of their hashes.
///
/// It tells states of a folder apart. Against people who choose objects so that two states look alike, the signed head helps.
struct ObjectSetHash: Hashable, Sendable {
  private var sum = SIMD4<UInt64>(repeating: 0)

  mutating func add(_ name: String, _ digest: ObjectDigest) throws { sum &+= try Self.term(name, digest) }
  mutating func remove(_ name: String, _ digest: ObjectDigest) throws { sum &-= try Self.term(name, digest) }

  private static func term(_ name: String, _ digest: ObjectDigest) throws -> SIMD4<UInt64> {
    try ObjectDigest(of: digest.bytes + Array(name.utf8)).words
  }

  var text: String {
    (0..<4).map { index in
      let digits = String(sum[index], radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}
