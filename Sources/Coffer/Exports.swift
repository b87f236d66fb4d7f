import CofferCrypto
import CofferStorage

/// Secret bytes: locked memory, wiped on release, redacted wherever they could be printed.
public typealias SecretBytes = CofferCrypto.SecretBytes

/// What opens a store: a key file, a key, or a passphrase.
public typealias KeySource = CofferStorage.KeySource

/// A file that holds a random key.
public typealias KeyFile = CofferStorage.KeyFile

extension KeyFile {
  /// Makes a key file with a fresh random key, mode 0600, durable when this returns.
  ///
  /// Missing parent folders are made with mode 0700. An existing file is kept as it is: of two callers at once one makes
  /// the file and both use it.
  ///
  /// - Throws: `CofferError.permissionDenied`, `.diskFull` or `.inputOutput`.
  public static func create(at path: String) throws {
    try CofferError.translating { try make(at: path) }
  }

  /// Whether there is a file at `path`; it may still not be a key file.
  public static func exists(at path: String) -> Bool {
    isPresent(at: path)
  }
}
