import ArgumentParser
import Coffer
import CofferMaintenance

/// The options that open another store, beside the common options.
struct OtherStoreOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Open the other store with this key file.", valueName: "path"), completion: .file())
  var otherKeyFile: String?

  @Option(help: ArgumentHelp("Read the key of the other store from this file descriptor.", valueName: "n"))
  var otherKeyFd: Int32?

  @Option(help: ArgumentHelp("Read the passphrase of the other store from this file descriptor.", valueName: "n"))
  var otherPassphraseFd: Int32?

  @Option(help: ArgumentHelp("Read a recovery key of the other store from this file descriptor.", valueName: "n"))
  var otherRecoveryKeyFd: Int32?

  /// Whether nothing was given.
  var isEmpty: Bool { otherKeyFile == nil && descriptors.isEmpty }

  private var descriptors: [Int32] { [otherKeyFd, otherPassphraseFd, otherRecoveryKeyFd].compactMap(\.self) }

  mutating func validate() throws {
    if otherKeyFile == "" { throw ValidationError("--other-key-file needs a path.") }
    if descriptors.count + (otherKeyFile == nil ? 0 : 1) > 1 {
      throw ValidationError(
        "Use one of --other-key-file, --other-key-fd, --other-passphrase-fd and --other-recovery-key-fd.")
    }
    try DescriptorOptions.check(descriptors)
  }

  /// Checks for conflicts with the first store's options.
  func check(_ common: CommonOptions) throws {
    guard
      [common.keyFd, common.passphraseFd, common.recoveryKeyFd, common.vaultKeyFd].compactMap(\.self).allSatisfy({
        !descriptors.contains($0)
      })
    else { throw ValidationError("Each secret needs a file descriptor of its own.") }
  }

  /// A session for the store at `path`, which uses the first store's key file unless another key is given.
  func session(_ path: String, _ common: CommonOptions, force: Bool = false, undeclared: Bool = false)
    throws -> CommandSession
  {
    var options = common.ofSession(force: force, undeclared: undeclared)
    options.store = path
    // Descriptors have already been read.
    options.keyFile = isEmpty ? common.keyFile : otherKeyFile
    (options.keyFd, options.passphraseFd, options.recoveryKeyFd) = (otherKeyFd, otherPassphraseFd, otherRecoveryKeyFd)
    options.vaultKeyFd = nil
    options.isOfOtherStore = true
    return try CommandSession(options)
  }
}

extension CommandSession {
  /// Unlocks the vault if it is locked and one of `collections` is sealed; nil for all collections.
  func unlockVault(_ database: Database, for collections: [String]?) throws {
    let access = VaultAccess(vault: database.vault, session: self)
    try access.unlockIfAtHand()
    guard !database.vault.isUnlocked else { return }
    let sealed = try database.makeConnection().read { transaction in
      try (collections ?? transaction.allCollections()).first { try transaction.isSealed(collection: $0) }
    }
    if let sealed { try access.unlock(for: sealed) }
  }
}
