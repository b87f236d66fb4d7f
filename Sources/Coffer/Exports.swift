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
  /// Makes a key file with a fresh random key, mode 0600, durable when this returns; with a group, mode 0640 and that group's.
  ///
  /// Missing parent folders are made with mode 0700. An existing file is kept as it is: of two callers at once one makes
  /// the file and both use it.
  ///
  /// - Parameter group: The name or the number of a group whose members share a store; see ``Database/Options/group``.
  /// - Returns: Whether this call made it.
  /// - Throws: `CofferError.unsupported` for no such group; `.keyUnavailable` when the path is a symbolic link that leads nowhere; `.permissionDenied`,
  ///   `.diskFull` or `.inputOutput`.
  @discardableResult
  public static func create(at path: String, group: String? = nil) throws -> Bool {
    try CofferError.translating { try make(at: path, group: group) }
  }

  /// Whether there is a file at `path`; it may still not be a key file.
  public static func exists(at path: String) -> Bool {
    isPresent(at: path)
  }
}

extension KeyFile {
  /// What lets others at this user's key file, in a sentence, as ssh complains of private keys; nil for a pipe, and for the
  /// file of another user, which that one answers for.
  package static func accessProblem(at path: String, ofStoreAt store: @autoclosure () -> String?) -> String? {
    guard FilePermissions.problemOfOwnRegularFile(at: path) != nil else { return nil }
    return FilePermissions.problemOfOwnRegularFile(at: path, of: store().flatMap(FileOwner.init(ofStoreAt:)))
  }

  /// What lets others at the key file, or put another one in its place, in sentences.
  ///
  /// - Parameter store: The store that it opens: its owner, and the group that shares it, may have the key file.
  public static func fileProblems(at path: String, ofStoreAt store: String? = nil) -> [String] {
    let owner = store.flatMap(FileOwner.init(ofStoreAt:))
    return FilePermissions.problems(ofFileAt: path, of: owner) + FilePermissions.problems(ofKeyFileAt: path, of: owner)
      + FilePermissions.problems(ofFolderAbove: path, of: owner)
  }
}
