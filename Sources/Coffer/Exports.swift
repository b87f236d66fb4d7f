import CofferCrypto
import CofferStorage

/// Secret bytes: locked memory, wiped on release, redacted wherever they could be printed.
public typealias SecretBytes = CofferCrypto.SecretBytes

/// What opens a store, or its vault: a key file, a passphrase, a recovery key, a command, a credential.
public typealias KeySource = CofferStorage.KeySource

/// A random key for the day all others are gone.
public typealias RecoveryKey = CofferStorage.RecoveryKey

/// How much work each guess at a passphrase costs.
public typealias PasswordHash = CofferCrypto.PasswordHash

/// A file that holds a random key.
public typealias KeyFile = CofferStorage.KeyFile

extension KeyFile {
  /// Makes a key file with a fresh random key, mode 0600, durable when this returns.
  ///
  /// Missing parent folders are made with mode 0700. An existing file is kept as it is: of two callers at once one makes
  /// the file and both use it.
  ///
  /// - Returns: Whether this call made it.
  /// - Throws: `CofferError.keyUnavailable` when the path is a symbolic link that leads nowhere; `.permissionDenied`,
  ///   `.diskFull` or `.inputOutput`.
  @discardableResult
  public static func create(at path: String) throws -> Bool {
    try CofferError.translating { try make(at: path) }
  }

  /// Whether there is a file at `path`; it may still not be a key file.
  public static func exists(at path: String) -> Bool {
    isPresent(at: path)
  }
}

extension KeyFile {
  /// What lets others at this user's key file, in a sentence, as ssh complains of private keys; nil for a pipe, and for the
  /// file of another user, which that one answers for.
  package static func accessProblem(at path: String) -> String? {
    FilePermissions.problemOfOwnRegularFile(at: path)
  }

  /// What lets others at the key file, or put another one in its place, in sentences.
  public static func fileProblems(at path: String) -> [String] {
    FilePermissions.problems(ofFileAt: path) + FilePermissions.problems(ofKeyFileAt: path)
      + FilePermissions.problems(ofFolderAbove: path)
  }
}
