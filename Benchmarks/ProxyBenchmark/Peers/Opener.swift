import Coffer
import Foundation

/// A way to open one of the `FilledStores`.
enum Opener: String, CaseIterable {
  case keyFile = "Coffer, key file"
  case rawKey = "Coffer, raw key"
  case plain = "plain SQLite"
  case grdb = "GRDB"
  case defaults = "UserDefaults"

  /// Who takes part with so many keys: `UserDefaults` reads a million in a quarter of a minute, and only on Linux has
  /// files of its own, which a daemon has elsewhere.
  static func contenders(keyCount: Int) -> [Opener] {
    #if os(Linux)
      keyCount > 1000 ? allCases.filter { $0 != .defaults } : allCases
    #else
      allCases.filter { $0 != .defaults }
    #endif
  }

  /// What opens the store, once all is at hand that a program would have.
  func prepared(_ stores: FilledStores) throws -> () throws -> any TextStore {
    switch self {
    case .keyFile: return { try CofferPeer(opening: stores.cofferPath, key: .keyFile(stores.cofferKeyFile)) }
    case .rawKey:
      let key = try Self.contents(of: stores.cofferKeyFile)
      return { try CofferPeer(opening: stores.cofferPath, key: .key(key)) }
    case .plain: return { try PlainDatabase(path: stores.plainPath) }
    case .grdb: return { try GRDBPeer(path: stores.grdbPath) }
    case .defaults: return { try Suite(name: stores.suite) }
    }
  }

  /// The text of a key file.
  private static func contents(of path: String) throws -> SecretBytes {
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    let byteCount = Int(lseek(descriptor, 0, SEEK_END))
    try require(descriptor >= 0 && byteCount > 0, "the key file cannot be read")
    return try SecretBytes(count: byteCount) { buffer in
      let readCount = pread(descriptor, buffer.baseAddress, byteCount, 0)
      try require(readCount == byteCount, "the key file cannot be read")
    }
  }

  /// One suite of `UserDefaults`.
  private struct Suite: TextStore {
    private let defaults: UserDefaults

    init(name: String) throws {
      guard let defaults = UserDefaults(suiteName: name) else { throw Failure(reason: "UserDefaults refused a suite") }
      self.defaults = defaults
    }

    func text(_ key: String) throws -> String? { defaults.string(forKey: key) }

    func close() throws {}
  }
}
