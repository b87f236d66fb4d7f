import Coffer
import Foundation

/// The stores that keep a file, and how to open them.
///
/// A new peer is a `TextStore`, a case here, and a name in its rows.
enum StoreKind: String, CaseIterable {
  case coffer = "Coffer"
  case cofferByRawKey = "Coffer, raw key"
  case plain = "plain SQLite"
  case grdb = "GRDB"
  case sqlCipher = "SQLCipher"
  case sqlCipherAsCoffer = "SQLCipher, Coffer's statements"
  case aegis = "SQLite3MC, AEGIS"
  case chaCha20 = "SQLite3MC, ChaCha20"
  case lmdb = "LMDB"
  case defaults = "UserDefaults"

  /// Those who take part with so many keys: `UserDefaults` writes all of them each time, and only on Linux has files of its
  /// own, which a daemon has elsewhere.
  static func contenders(keyCount: Int) -> [StoreKind] {
    #if os(Linux)
      keyCount > 100_000 ? allCases.filter { $0 != .defaults } : allCases
    #else
      allCases.filter { $0 != .defaults }
    #endif
  }

  /// The kind with this file.
  var owner: StoreKind { self == .cofferByRawKey ? .coffer : self }

  /// Creates an empty store.
  func create(_ stores: FilledStores) throws -> any TextStore {
    let path = stores.path(self)
    switch self {
    case .coffer, .cofferByRawKey: return try CofferPeer(creating: path)
    case .plain: return try PlainDatabase(path: path, isNew: true)
    case .grdb: return try GRDBPeer(path: path, isNew: true)
    case .sqlCipher: return try CipherPeer(.sqlCipher, creating: path)
    case .aegis: return try CipherPeer(.aegis, creating: path)
    case .chaCha20: return try CipherPeer(.chaCha20, creating: path)
    case .sqlCipherAsCoffer:
      return try PlainDatabase(.sqlCipher, path: path, key: CipherKind.makeKey(of: path), isNew: true)
    case .lmdb: return try LMDBPeer(path: path, isNew: true)
    case .defaults: return try DefaultsPeer()
    }
  }

  /// Opens the store, once everything is loaded that a program would have.
  func opener(_ stores: FilledStores) throws -> () throws -> any TextStore {
    let path = stores.path(self)
    switch self {
    case .coffer: return { try CofferPeer(opening: path, key: .keyFile(CofferPeer.keyFile(of: path))) }
    case .cofferByRawKey:
      let key = try Self.contents(of: CofferPeer.keyFile(of: path))
      return { try CofferPeer(opening: path, key: .key(key)) }
    case .plain: return { try PlainDatabase(path: path) }
    case .grdb: return { try GRDBPeer(path: path) }
    case .sqlCipher: return try opener(.sqlCipher, path)
    case .aegis: return try opener(.aegis, path)
    case .chaCha20: return try opener(.chaCha20, path)
    case .sqlCipherAsCoffer:
      let key = try CipherKind.key(of: path)
      return { try PlainDatabase(.sqlCipher, path: path, key: key) }
    case .lmdb: return { try LMDBPeer(path: path) }
    case .defaults: return { try DefaultsPeer(suite: stores.suite) }
    }
  }

  private func opener(_ cipher: CipherKind, _ path: String) throws -> () throws -> any TextStore {
    // Coffer's libraries are also loaded before the program begins.
    _ = try cipher.library()
    let key = try CipherKind.key(of: path)
    return { try CipherPeer(cipher, path: path, key: key) }
  }

  func open(_ stores: FilledStores) throws -> any TextStore { try opener(stores)() }

  /// The text of a key file.
  private static func contents(of path: String) throws -> SecretBytes {
    let descriptor = Foundation.open(path, O_RDONLY)
    defer { close(descriptor) }
    let byteCount = Int(lseek(descriptor, 0, SEEK_END))
    try require(descriptor >= 0 && byteCount > 0, "the key file cannot be read")
    return try SecretBytes(count: byteCount) { buffer in
      let readCount = pread(descriptor, buffer.baseAddress, byteCount, 0)
      try require(readCount == byteCount, "the key file cannot be read")
    }
  }
}
