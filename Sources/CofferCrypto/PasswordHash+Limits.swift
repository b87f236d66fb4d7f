extension PasswordHash {
  /// The highest memory that a cost may require: 4 GiB.
  static let maximumMemory: UInt64 = 4 << 30

  /// The most work, in the unit of `work`: minutes, not hours.
  static let maximumWork: UInt64 = 1 << 28

  /// The work of one block mix of scrypt, of which there are N·r·p; a fifth to a quarter of a microsecond.
  static let workPerBlockMix: UInt64 = 1
  /// Two calls of SHA-512's compression function: 0.38 µs where a block mix takes 0.25.
  static let workPerIteration: UInt64 = 2
  /// One KiB filled once by Argon2id: 0.65 µs in a cache, 1.1 µs in memory, where a block mix takes 0.25.
  static let workPerKiB: UInt64 = 4

  /// The work, in a unit of about the same time for each algorithm, so that a bound on it is a bound on time.
  ///
  /// As large as possible where it does not fit.
  package var work: UInt64 {
    func product(_ factors: UInt64...) -> UInt64 {
      factors.reduce(1) { product, factor in
        let (next, isOverflow) = product.multipliedReportingOverflow(by: factor)
        return isOverflow ? .max : next
      }
    }
    return switch self {
    case .scrypt(let log2N, let r, let p):
      log2N < 64 ? product(Self.workPerBlockMix, 1 << UInt64(log2N), UInt64(r), UInt64(p)) : .max
    case .pbkdf2HMACSHA512(let iterations): product(Self.workPerIteration, UInt64(iterations))
    case .argon2id(let memoryKiB, let iterations, _):
      product(Self.workPerKiB, UInt64(memoryKiB), UInt64(iterations))
    }
  }

  /// The longest key: PBKDF2 repeats its whole cost for each 64 bytes, and HKDF can extend a key cheaply.
  static let maximumKeyByteCount = 128

  /// Refuses costs that the algorithm does not define, and those beyond the ceilings.
  ///
  /// Costs come from files: the arithmetic must not overflow for any of them.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)``.
  func checkCost() throws(CryptoError) {
    switch self {
    case .scrypt(let log2N, let r, let p):
      try Self.checkScrypt(log2N: UInt64(log2N), r: UInt64(r), p: UInt64(p))
      guard work <= Self.maximumWork else {
        throw .invalidParameter("scrypt with N = 2^\(log2N), r = \(r), p = \(p) would take too long")
      }
    case .pbkdf2HMACSHA512(let iterations):
      guard iterations >= 1, work <= Self.maximumWork else {
        throw .invalidParameter(
          "PBKDF2 takes 1 to \(Self.maximumWork / Self.workPerIteration) iterations, not \(iterations)")
      }
    case .argon2id(let memoryKiB, let iterations, let lanes):
      try Self.checkArgon2id(memoryKiB: UInt64(memoryKiB), iterations: UInt64(iterations), lanes: UInt64(lanes))
      guard work <= Self.maximumWork else {
        throw .invalidParameter("Argon2id with \(memoryKiB) KiB and \(iterations) iterations would take too long")
      }
    }
  }

  /// RFC 7914, 2 and 6: N is a power of two above 1 and below 2^(128·r/8), p at most (2^32 - 1)·32 / (128·r).
  private static func checkScrypt(log2N: UInt64, r: UInt64, p: UInt64) throws(CryptoError) {
    // At most 32 bits each, so that the products below stay within 64.
    guard (1...32).contains(log2N), r >= 1, p >= 1, log2N < 16 * r, r * p < 1 << 30 else {
      throw .invalidParameter("scrypt does not define N = 2^\(log2N), r = \(r), p = \(p)")
    }
    let n: UInt64 = 1 << log2N
    // N blocks in the table, p to work on, 2 for mixing, as OpenSSL counts them. Factors are below 2^37 and 2^33 here.
    let (memory, memoryOverflows) = (128 * r).multipliedReportingOverflow(by: n + p + 2)
    guard !memoryOverflows, memory <= maximumMemory else {
      throw .invalidParameter("scrypt with N = 2^\(log2N), r = \(r), p = \(p) needs more than 4 GiB of memory")
    }
  }

  /// RFC 9106, 3.1: 1 to 2^24 - 1 lanes, at least 8 KiB for each, one pass or more.
  private static func checkArgon2id(memoryKiB: UInt64, iterations: UInt64, lanes: UInt64) throws(CryptoError) {
    guard (1..<(1 << 24)).contains(lanes), iterations >= 1, memoryKiB >= 8 * lanes else {
      throw .invalidParameter(
        "Argon2id does not define memory = \(memoryKiB) KiB, iterations = \(iterations), lanes = \(lanes)")
    }
    guard memoryKiB <= maximumMemory / 1024 else {
      throw .invalidParameter("Argon2id with \(memoryKiB) KiB needs more than 4 GiB of memory")
    }
  }

  /// Refuses lengths that the algorithm does not define.
  ///
  /// - Throws: ``CryptoError/invalidParameter(_:)``.
  func checkSizes(saltCount: Int, keyCount: Int) throws(CryptoError) {
    var minimumSalt = 0
    var minimumKey = 1
    if case .argon2id = self {
      // RFC 9106, 3.1, and OpenSSL's lower bound for the salt.
      minimumSalt = 8
      minimumKey = 4
    }
    guard saltCount >= minimumSalt else {
      throw .invalidParameter("the salt has \(saltCount) bytes, but needs \(minimumSalt)")
    }
    guard (minimumKey...Self.maximumKeyByteCount).contains(keyCount) else {
      throw .invalidParameter(
        "a password hash returns \(minimumKey) to \(Self.maximumKeyByteCount) bytes, not \(keyCount)")
    }
  }
}
