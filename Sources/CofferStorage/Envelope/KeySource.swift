import CofferCrypto

/// What opens a store.
public enum KeySource: Sendable {
  /// The path of a file that holds a random key, as `KeyFile.create(at:)` makes it.
  case keyFile(String)
  /// A random key itself: 32 bytes, or the text of a key file.
  case key(SecretBytes)
  /// A passphrase, as UTF-8 bytes.
  case passphrase(SecretBytes)

  var kind: Slot.Kind {
    switch self {
    case .keyFile, .key: .keyFile
    case .passphrase: .passphrase
    }
  }

  /// The bytes that a slot takes: of a key file its 32 random bytes.
  func secret() throws -> SecretBytes {
    switch self {
    case .keyFile(let path): return try KeyFile.read(at: path)
    case .key(let bytes): return try KeyFile.decode(bytes)
    case .passphrase(let bytes):
      guard bytes.count > 0 else { throw StorageError.keyUnavailable(reason: "the passphrase is empty") }
      return bytes
    }
  }
}
