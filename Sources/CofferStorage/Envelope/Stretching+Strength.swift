import CofferCrypto

extension Slot.Stretching {
  /// Whether a passphrase is stretched less than that of a new slot would be.
  ///
  /// For the other algorithms than the standard one it is less than what OWASP's password storage cheat sheet asks for
  /// today.
  package var isWeakerThanStandard: Bool {
    switch self {
    case .none: false
    case .password(.scrypt(let log2N, let r, let p)):
      // 2^17 · 8 · 1
      UInt64(r) * UInt64(p) << UInt64(log2N) < 1 << 20
    case .password(.pbkdf2HMACSHA512(let iterations)): iterations < 210_000
    case .password(.argon2id(let memoryKiB, let iterations, _)):
      // 19 MiB twice.
      UInt64(memoryKiB) * UInt64(iterations) < 2 * 19_456
    }
  }
}
