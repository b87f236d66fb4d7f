import CofferCrypto

/// A log of all heads before one: it proves that a head descends from an earlier one, at any distance.
///
/// Sixteen digests form a block, sixteen digests of blocks a block of the next level, and so on. Complete blocks are objects of the carrier; a
/// head has the rest.
struct HeadLog: Equatable, Sendable {
  static let blockCount = 16

  /// The number of heads in it.
  private(set) var count: UInt64 = 0
  /// By level, from the heads up: the digests that no block has yet.
  private(set) var rest: [[[UInt8]]] = []

  init() {}

  /// Appends the digest of a head.
  ///
  /// - Returns: The blocks that this completes.
  mutating func append(_ digest: [UInt8]) throws -> [CarrierObject] {
    var blocks: [CarrierObject] = []
    var digest = digest
    var index = count
    count += 1
    for level in 0... {
      if level == rest.count { rest.append([]) }
      rest[level].append(digest)
      guard rest[level].count == Self.blockCount else { break }
      index /= UInt64(Self.blockCount)
      let bytes = [Format.version] + rest[level].joined()
      blocks.append(CarrierObject(name: Self.object(level, index), bytes: bytes))
      digest = try bytes.digest
      rest[level] = []
    }
    return blocks
  }

  /// The objects that prove which head is at an index, from the heads up.
  func proof(at index: UInt64) -> [String] {
    var (names, index, level) = ([String](), index, 0)
    while index < firstUnblocked(level) {
      index /= UInt64(Self.blockCount)
      names.append(Self.object(level, index))
      level += 1
    }
    return names
  }

  /// Whether a head has this index.
  ///
  /// - Parameter blocks: The objects of ``proof(at:)`` that exist, by name.
  func has(_ digest: [UInt8], at index: UInt64, by blocks: [String: [UInt8]]) throws -> Bool {
    guard index < count else { return false }
    var (digest, index, level) = (digest, index, 0)
    while index < firstUnblocked(level) {
      let place = 1 + Int(index % UInt64(Self.blockCount)) * SHA256.byteCount
      index /= UInt64(Self.blockCount)
      guard let block = blocks[Self.object(level, index)], block.count == Self.blockByteCount,
        block[place..<place + SHA256.byteCount].elementsEqual(digest)
      else { return false }
      digest = try block.digest
      level += 1
    }
    return rest[level][Int(index - firstUnblocked(level))] == digest
  }

  private static let blockByteCount = 1 + blockCount * SHA256.byteCount

  /// The index of the first digest of a level that no block has.
  private func firstUnblocked(_ level: Int) -> UInt64 {
    let shift = UInt64(4 * level)
    return shift < 64 ? (count >> shift) & ~15 : 0
  }

  private static func object(_ level: Int, _ index: UInt64) -> String {
    let digits = String(index, radix: 16)
    return "l/\(String(level, radix: 16))/\(String(repeating: "0", count: 16 - digits.utf8.count))\(digits)"
  }

  // MARK: Bytes

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(number: count)
    for level in rest { for digest in level { bytes += digest } }
    return bytes
  }

  init(_ reader: inout ByteReader) throws(MalformedObject) {
    count = try reader.number()
    var left = count
    while left > 0 {
      var level: [[UInt8]] = []
      for _ in 0..<(left % UInt64(Self.blockCount)) { level.append(try reader.array(SHA256.byteCount)) }
      rest.append(level)
      left /= UInt64(Self.blockCount)
    }
  }
}
