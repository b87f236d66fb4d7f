/// The extendable-output function SHAKE128 (FIPS 202), for vectors that are generated and compared with it.
///
/// OpenSSL 3.0 can take output only once, hence this; it is written for reading, and its own test checks it.
struct SHAKE128 {
  private static let rate = 168

  private var lanes = [UInt64](repeating: 0, count: 25)
  private var position = 0
  private var isSqueezing = false

  mutating func absorb(_ input: [UInt8]) {
    precondition(!isSqueezing, "SHAKE128 takes no more input once it has given output.")
    for byte in input {
      xor(byte, at: position)
      position += 1
      if position == Self.rate {
        permute()
        position = 0
      }
    }
  }

  mutating func squeeze(_ count: Int) -> [UInt8] {
    if !isSqueezing {
      // The suffix 1111 that names SHAKE, the first bit of padding, and its last bit.
      xor(0x1f, at: position)
      xor(0x80, at: Self.rate - 1)
      permute()
      position = 0
      isSqueezing = true
    }
    return (0..<count).map { _ in
      if position == Self.rate {
        permute()
        position = 0
      }
      defer { position += 1 }
      return UInt8(truncatingIfNeeded: lanes[position / 8] >> UInt64(position % 8 * 8))
    }
  }

  private mutating func xor(_ byte: UInt8, at index: Int) {
    lanes[index / 8] ^= UInt64(byte) << UInt64(index % 8 * 8)
  }

  // MARK: - Keccak-f[1600], FIPS 202, 3.2 and 3.3; lane (x, y) is at x + 5y

  private mutating func permute() {
    lanes.withUnsafeMutableBufferPointer { a in
      var moved = [UInt64](repeating: 0, count: 25)
      moved.withUnsafeMutableBufferPointer { b in
        for constant in Self.roundConstants {
          Self.theta(a)
          for index in 0..<25 {
            let (x, y) = (index % 5, index / 5)
            b[y + 5 * ((2 * x + 3 * y) % 5)] = Self.rotate(a[index], by: Self.offsets[index])
          }
          for index in 0..<25 {
            let row = index / 5 * 5
            a[index] = b[index] ^ (~b[row + (index + 1) % 5] & b[row + (index + 2) % 5])
          }
          a[0] ^= constant
        }
      }
    }
  }

  private static func theta(_ a: UnsafeMutableBufferPointer<UInt64>) {
    // Loops, not `map` and `reduce`: thousands of blocks pass here in tests that are not optimized.
    var columns = [UInt64](repeating: 0, count: 5)
    for index in 0..<25 { columns[index % 5] ^= a[index] }
    for index in 0..<25 {
      a[index] ^= columns[(index + 4) % 5] ^ rotate(columns[(index + 1) % 5], by: 1)
    }
  }

  private static func rotate(_ lane: UInt64, by count: UInt64) -> UInt64 {
    count == 0 ? lane : lane << count | lane >> (64 - count)
  }

  /// Rotations of step ρ: t(t + 1)/2 along the walk (x, y) → (y, 2x + 3y) from (1, 0).
  private static let offsets: [UInt64] = {
    var offsets = [UInt64](repeating: 0, count: 25)
    var (x, y) = (1, 0)
    for step in 1...24 {
      offsets[x + 5 * y] = UInt64(step * (step + 1) / 2 % 64)
      (x, y) = (y, (2 * x + 3 * y) % 5)
    }
    return offsets
  }()

  /// Constants of step ι: bits 2^j - 1 come from a shift register (FIPS 202, algorithm 5).
  private static let roundConstants: [UInt64] = {
    var register: UInt8 = 1
    return (0..<24).map { _ in
      var constant: UInt64 = 0
      for j in 0...6 {
        if register & 1 == 1 { constant |= 1 << ((1 << UInt64(j)) - 1) }
        register = register << 1 ^ (register >> 7) * 0x71
      }
      return constant
    }
  }()
}
