import ArgumentParser
import Coffer

/// The options for the cost of each guess at a passphrase.
struct StretchingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Stretch the passphrase by scrypt with 2^N rounds, 14 to 20; 17 by default.", valueName: "n"))
  var cost: UInt8?

  @Option(
    help: ArgumentHelp("Measure which cost of scrypt takes this many seconds here, and use it.", valueName: "seconds"))
  var calibrate: Double?

  @Flag(help: "Stretch by Argon2id (64 MiB, 3 passes); needs OpenSSL 3.2 or later.")
  var argon2id = false

  @Option(help: ArgumentHelp("Stretch by PBKDF2-HMAC-SHA512, for FIPS 140, with N iterations.", valueName: "n"))
  var pbkdf2: UInt32?

  /// Whether any of these options was given.
  var areGiven: Bool { ways > 0 }

  private var ways: Int { [cost != nil, calibrate != nil, argon2id, pbkdf2 != nil].filter { $0 }.count }

  mutating func validate() throws {
    if ways > 1 { throw ValidationError("Use one of --cost, --calibrate, --argon2id and --pbkdf2.") }
    if let cost, !(14...20).contains(cost) { throw ValidationError("--cost needs a number from 14 to 20.") }
    if let calibrate, !(calibrate > 0 && calibrate <= 60) {
      throw ValidationError("--calibrate needs a number of seconds above 0, up to 60.")
    }
    if let pbkdf2, !(100_000...4_194_304).contains(pbkdf2) {
      throw ValidationError("--pbkdf2 needs a number from 100000 to 4194304.")
    }
  }

  /// The password hash; measures its cost if requested.
  func hash() throws -> PasswordHash {
    if let cost { return .scrypt(log2N: cost, r: 8, p: 1) }
    if let calibrate { return try .calibrated(for: .milliseconds(Int64(calibrate * 1000))) }
    if let pbkdf2 { return .pbkdf2HMACSHA512(iterations: pbkdf2) }
    guard argon2id else { return .standard }
    guard PasswordHash.isArgon2idAvailable else {
      throw Failure(.other, "the installed OpenSSL has no Argon2id; 3.2 introduced it. Use --cost.")
    }
    // RFC 9106, 4: the second recommended option.
    return .argon2id(memoryKiB: 64 << 10, iterations: 3, lanes: 4)
  }
}
