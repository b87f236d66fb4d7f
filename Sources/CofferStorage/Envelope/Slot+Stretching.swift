import CofferCrypto

extension Slot.Stretching {
  package static let standard = Self.password(.standard)

  var encoded: (algorithm: UInt8, costs: [UInt32]) {
    switch self {
    case .none: (0, [0, 0, 0])
    case .outOfBounds(let algorithm, let costs): (algorithm, costs)
    case .password(.scrypt(let log2N, let r, let p)): (1, [UInt32(log2N), r, p])
    case .password(.pbkdf2HMACSHA512(let iterations)): (2, [iterations, 0, 0])
    case .password(.argon2id(let memoryKiB, let iterations, let lanes)): (3, [memoryKiB, iterations, lanes])
    }
  }

  init(algorithm: UInt8, costs: (UInt32, UInt32, UInt32)) throws {
    try EnvelopeError.check(algorithm, isAtMost: 3, "stretching of a slot")
    switch algorithm {
    case 0 where costs == (0, 0, 0): self = .none
    case 1 where costs.0 <= UInt8.max:
      self = .password(.scrypt(log2N: UInt8(costs.0), r: costs.1, p: costs.2))
    case 2 where costs.1 == 0 && costs.2 == 0: self = .password(.pbkdf2HMACSHA512(iterations: costs.0))
    case 3: self = .password(.argon2id(memoryKiB: costs.0, iterations: costs.1, lanes: costs.2))
    case 1...3: self = .outOfBounds(algorithm: algorithm, costs: [costs.0, costs.1, costs.2])
    default: throw EnvelopeError.unreadable("slot algorithm \(algorithm)")
    }
  }

  /// The highest cost of a slot, in the unit of `PasswordHash.work`: about two seconds, of any algorithm.
  private static let maximumWork: UInt64 = 1 << 23

  /// The highest total cost of the slots tried for one opening, some four seconds: two of the costliest, or 16 of the
  /// standard.
  static let maximumTotalWork: UInt64 = 1 << 24

  /// The cost of trying a secret, in the unit of `PasswordHash.work`; nil when it is low enough to weaken the store, or
  /// high enough to exhaust the machine.
  var work: UInt64? {
    switch self {
    case .none: return 0
    case .outOfBounds: return nil
    case .password(.scrypt(let log2N, let r, let p)):
      guard (14...20).contains(log2N), (8...32).contains(r), (1...16).contains(p) else { return nil }
    case .password(.pbkdf2HMACSHA512(let iterations)):
      guard iterations >= 100_000 else { return nil }
    case .password(.argon2id(let memoryKiB, let iterations, let lanes)):
      guard memoryKiB >= 19_456, iterations >= 1, (1...64).contains(lanes) else { return nil }
    }
    guard case .password(let hash) = self, hash.work <= Self.maximumWork else { return nil }
    return hash.work
  }

  /// Whether a slot of this cost is ever tried.
  package var isWithinBounds: Bool { work != nil }

  /// Refuses a cost that is out of bounds.
  func checkCost() throws {
    guard work != nil else {
      throw StorageError.unsupported(reason: "the cost of a passphrase slot is out of bounds: \(self.name)")
    }
  }

  /// The algorithm and its cost, for display.
  package var name: String {
    switch self {
    case .none: "none, the key is random"
    case .outOfBounds(let algorithm, let costs):
      "\(["none", "scrypt", "PBKDF2-HMAC-SHA512", "Argon2id"][Int(algorithm)]) with the costs \(costs)"
    case .password(.scrypt(let log2N, let r, let p)): "scrypt N=2^\(log2N) r=\(r) p=\(p)"
    case .password(.pbkdf2HMACSHA512(let iterations)): "PBKDF2-HMAC-SHA512, \(iterations) iterations"
    case .password(.argon2id(let memoryKiB, let iterations, let lanes)):
      "Argon2id \(memoryKiB) KiB, \(iterations) iterations, \(lanes) lanes"
    }
  }
}

extension PasswordHash {
  /// The default: 128 MiB and some tenths of a second per guess, the first recommendation for scrypt in OWASP's
  /// password storage cheat sheet.
  public static let standard = Self.scrypt(log2N: 17, r: 8, p: 1)

  /// scrypt at the highest cost that takes no longer than `duration` on this machine, from 16 MiB to 1 GiB of memory.
  ///
  /// Measuring takes about `duration`.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)``, also when memory runs out.
  public static func calibrated(for duration: Duration) throws -> PasswordHash {
    let password = try SecretBytes.random(count: 16)
    let salt = [UInt8](repeating: 0, count: 32)
    var log2N: UInt8 = 14
    // The time is proportional to N: the next step takes twice as long.
    while log2N < 20 {
      let time = try ContinuousClock().measure {
        _ = try PasswordHash.scrypt(log2N: log2N, r: 8, p: 1).deriveKey(from: password, salt: salt, count: 32)
      }
      guard time * 2 <= duration else { break }
      log2N += 1
    }
    return .scrypt(log2N: log2N, r: 8, p: 1)
  }
}

extension Slot.Stretching {
  /// Whether a passphrase is stretched less than in a new slot.
  ///
  /// For algorithms other than the standard one, the limit is what OWASP's password storage cheat sheet recommends
  /// today.
  package var isWeakerThanStandard: Bool {
    guard work != nil, case .password(let hash) = self else { return false }
    return switch hash {
    case .scrypt: hash.work < PasswordHash.standard.work
    case .pbkdf2HMACSHA512(let iterations): iterations < 210_000
    // 19 MiB twice.
    case .argon2id(let memoryKiB, let iterations, _): UInt64(memoryKiB) * UInt64(iterations) < 2 * 19_456
    }
  }
}
