import CofferCrypto

/// A hash of a set of objects, updated by adding and removing single objects in any order: LtHash16 of Lewi, Kim, Maykov and Weis, "Securing Update Propagation with Homomorphic Hashing" (2019), with SHAKE128.
///
/// Finding two sets with the same hash is a short-vector problem in a lattice, even with all keys: a reader who controls
/// the carrier cannot replace the set that a writer signed.
struct SetHash: Equatable, Sendable {
  static let laneCount = 1024

  private var lanes = [UInt16](repeating: 0, count: laneCount)

  /// The hash of the empty set.
  init() {}

  mutating func add(_ name: [UInt8], digest: [UInt8]) throws { try combine(name, digest, &+) }

  mutating func remove(_ name: [UInt8], digest: [UInt8]) throws { try combine(name, digest, &-) }

  private mutating func combine(
    _ name: [UInt8], _ digest: [UInt8], _ operation: (UInt16, UInt16) -> UInt16
  ) throws {
    try withUnsafeTemporaryAllocation(of: UInt16.self, capacity: Self.laneCount) { element in
      try SHAKE128.fill(UnsafeMutableRawBufferPointer(element), from: Self.label + name + digest)
      lanes.withUnsafeMutableBufferPointer { lanes in
        for index in 0..<Self.laneCount { lanes[index] = operation(lanes[index], UInt16(bigEndian: element[index])) }
      }
    }
  }

  private static let label = [UInt8]("coffer fleet v1 set".utf8)

  // MARK: Bytes

  /// The lanes, one after another.
  var bytes: [UInt8] { lanes.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] } }

  /// Nil if the number of bytes is not that of the lanes.
  init?(bytes: [UInt8]) {
    guard bytes.count == 2 * Self.laneCount else { return nil }
    for index in 0..<Self.laneCount { lanes[index] = UInt16(bytes[2 * index]) << 8 | UInt16(bytes[2 * index + 1]) }
  }

  /// The digest of the set in a head.
  var digest: [UInt8] { get throws { try bytes.digest } }
}
