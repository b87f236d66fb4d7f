import CofferCrypto

extension Slot.Stretching {
  /// Whether a passphrase is stretched less than that of a new slot would be.
  ///
  /// For the other algorithms than the standard one it is less than what OWASP's password storage cheat sheet asks for
  /// today.
  package var isWeakerThanStandard: Bool {
    guard let work else { return false }
    return switch self {
    case .none, .outOfBounds: false
    // 2^17 · 8 · 1
    case .password(.scrypt): work < 1 << 20
    case .password(.pbkdf2HMACSHA512): work < 210_000
    // 19 MiB twice.
    case .password(.argon2id): work < 2 * 19_456
    }
  }
}
