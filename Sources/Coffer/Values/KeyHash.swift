/// A hash of names and keys for in-memory tables: one multiplication per 16 bytes, keyed by a random seed, so that an
/// attacker cannot choose keys that collide.
///
/// It folds the 128 bits of each product to 64, as the wyhash family does.
enum KeyHash {
  private static let multipliers: (UInt64, UInt64) = (0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03)

  @inline(__always)
  static func hash(_ bytes: UnsafeBufferPointer<UInt8>, seed: UInt64) -> UInt64 {
    var hash = seed ^ UInt64(truncatingIfNeeded: bytes.count) &* multipliers.0
    // The same result as for empty bytes with an address.
    guard var start = UnsafeRawPointer(bytes.baseAddress) else {
      return fold(fold(multipliers.1, hash), hash ^ multipliers.0)
    }
    var count = bytes.count
    while count > 16 {
      hash = fold(
        start.loadUnaligned(as: UInt64.self) ^ multipliers.0,
        start.loadUnaligned(fromByteOffset: 8, as: UInt64.self) ^ hash)
      start += 16
      count -= 16
    }
    var low: UInt64 = 0
    var high: UInt64 = 0
    if count >= 8 {
      low = start.loadUnaligned(as: UInt64.self)
      high = start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
    } else if count >= 4 {
      low = UInt64(start.loadUnaligned(as: UInt32.self))
      high = UInt64(start.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
    } else if count > 0 {
      low = UInt64(start.load(as: UInt8.self)) << 8 | UInt64(start.load(fromByteOffset: count - 1, as: UInt8.self))
      high = UInt64(start.load(fromByteOffset: count / 2, as: UInt8.self))
    }
    return fold(fold(low ^ multipliers.1, high ^ hash), hash ^ multipliers.0)
  }

  @inline(__always)
  private static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }
}
