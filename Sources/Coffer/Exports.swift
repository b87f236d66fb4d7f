import CofferCrypto
import CofferStorage

/// Lists folders, for the tool and fleets.
package typealias AbandonedFiles = CofferStorage.AbandonedFiles
package typealias FolderNames = CofferStorage.FolderNames

/// Reports changes of files, for the tool.
package typealias FileWatcher = CofferStorage.FileWatcher

/// Commands in messages, for the tool.
package typealias ShellWord = CofferStorage.ShellWord

/// The library's own child processes, for the tool.
package typealias OwnChildren = CofferStorage.OwnChildren

/// Secret bytes: locked memory, wiped on release, redacted wherever they could be printed.
public typealias SecretBytes = CofferCrypto.SecretBytes

/// What opens a store or its vault: a key file, a passphrase, a recovery key, a command, a credential.
public typealias KeySource = CofferStorage.KeySource

/// A random key to write down, in case all others are lost.
public typealias RecoveryKey = CofferStorage.RecoveryKey

/// The cost of each guess at a passphrase.
public typealias PasswordHash = CofferCrypto.PasswordHash

/// What a file is, by its first bytes.
package typealias FileKind = CofferStorage.FileKind

/// A file that holds a random key.
public typealias KeyFile = CofferStorage.KeyFile

extension KeyFile {
  /// Creates a key file with a new random key, with mode 0600, durable when this returns.
  ///
  /// With a group, the file gets mode 0640 and that group. Missing parent folders are created with mode 0700. An existing
  /// file is kept as it is: if two callers run at once, one creates the file and both use it.
  ///
  /// - Parameter group: The name or the number of a group whose members share a store; see ``DatabaseOptions/group``.
  /// - Returns: Whether this call created it.
  /// - Throws: `CofferError.unsupported` for an unknown group; `.keyUnavailable` when the path is a dangling symbolic link;
  ///   `.permissionDenied`,
  ///   `.diskFull` or `.inputOutput`.
  @discardableResult
  public static func create(at path: String, group: String? = nil) throws -> Bool {
    try CofferError.translating { try make(at: path, group: group) }
  }

  /// Removes a key file that opens nothing.
  package static func discard(at path: String) { unlink(path) }

  /// Puts a new key file in the place of the one at `path`; see `replace(at:by:)`.
  package static func putInPlace(of path: String, _ new: String) throws -> String {
    try CofferError.translating { try replace(at: path, by: new) }
  }

  /// Checks that a new key file can take the place of the one at `path`; see `checkReplaceable(at:)`.
  package static func checkPlace(of path: String) throws {
    try CofferError.translating { try checkReplaceable(at: path) }
  }

  /// Checks that the key file at `new` can take the place of the one at `path`; see `checkReplacement(of:by:)`.
  package static func check(_ new: String, inPlaceOf path: String) throws {
    try CofferError.translating { try checkReplacement(of: path, by: new) }
  }

  /// Whether there is a file at `path`; it need not be a valid key file.
  package static func exists(at path: String) -> Bool {
    isPresent(at: path)
  }
}

extension KeyFile {
  /// What gives others access to this user's key file, in a sentence, like ssh's complaints about private keys, and the command
  /// that mends it; nil for a pipe, and for another user's file, for which that user is responsible.
  ///
  /// - Parameters:
  ///   - store: The store that it opens, which a group may share: its members need the file.
  ///   - isOfGroup: Whether a group is to share it, whose store is not there yet.
  package static func accessProblem(
    at path: String, ofStoreAt store: @autoclosure () -> String?, isOfGroup: Bool = false
  ) -> String? {
    guard let problem = FilePermissions.problemOfOwnRegularFile(at: path) else { return nil }
    let owner = store().flatMap(FileOwner.init(ofStoreAt:))
    // Where the path is a link, these commands change what it leads to: say what that is.
    let file = regularFile(at: path) ?? path
    guard isOfGroup || owner?.isShared ?? false else { return "\(problem) Run: chmod 600 \(ShellWord.quoted(file))" }
    let isOpenToAll = FilePermissions.isOpenToAll(path)
    guard isOpenToAll || !isOfGroup && FilePermissions.problemOfOwnRegularFile(at: path, of: owner) != nil else {
      return nil
    }
    // A group other than the store's has no use for it.
    let group = SystemName.group(owner?.group ?? 0)
    let word = ShellWord.quoted(file)
    return isOpenToAll ? "\(problem) Run: chmod o-rwx \(word)" : "\(problem) Run: chgrp \(group) \(word)"
  }

  /// What lets others read the key file, or replace it, in sentences.
  ///
  /// - Parameter store: The store that it opens, whose owner and sharing group may have the key file.
  package static func fileProblems(at path: String, ofStoreAt store: String? = nil) -> [String] {
    let owner = store.flatMap(FileOwner.init(ofStoreAt:))
    return FilePermissions.problems(ofFileAt: path, of: owner) + FilePermissions.problems(ofKeyFileAt: path, of: owner)
      + FilePermissions.problems(ofFolderAbove: path, of: owner)
  }
}

/// The user by whose hand a command is given a file: the one who decides what is at that path.
///
/// Root opens the file with that user's rights, so that it reads and writes nothing that the user could not.
package struct FileHand {
  private let owner: FileOwner

  package init(_ path: String) { owner = FileOwner(ofHandAt: path) }

  /// Runs `body` with the user's rights, on this thread.
  package func acting<Result>(_ body: () throws -> Result) throws -> Result {
    try CofferError.translating { try owner.acting(body) }
  }
}
