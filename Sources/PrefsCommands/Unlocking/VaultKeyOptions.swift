import ArgumentParser
import Coffer

/// The options that give what unlocks the vault.
struct VaultKeyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Unlock the vault with this key file.", valueName: "path"), completion: .file())
  var vaultKeyFile: String?

  @Option(help: ArgumentHelp("Read the passphrase of the vault from this file descriptor.", valueName: "n"))
  var vaultPassphraseFd: Int32?

  @Option(help: ArgumentHelp("Read the recovery key of the vault from this file descriptor.", valueName: "n"))
  var vaultRecoveryKeyFd: Int32?

  /// Whether nothing was given.
  var isEmpty: Bool { vaultKeyFile == nil && descriptors.isEmpty }

  private var descriptors: [Int32] { [vaultPassphraseFd, vaultRecoveryKeyFd].compactMap(\.self) }

  mutating func validate() throws {
    if vaultKeyFile == "" { throw ValidationError("--vault-key-file needs a path.") }
    if descriptors.count + (vaultKeyFile == nil ? 0 : 1) > 1 {
      throw ValidationError("Use one of --vault-key-file, --vault-passphrase-fd and --vault-recovery-key-fd.")
    }
    try DescriptorOptions.check(descriptors)
  }

  /// What unlocks the vault; nil when nothing was given.
  func source() throws -> KeySource? {
    if let vaultKeyFile { return .keyFile(vaultKeyFile) }
    if let vaultPassphraseFd { return .passphrase(try FileDescriptor.readTypedSecret(vaultPassphraseFd)) }
    if let vaultRecoveryKeyFd { return .recoveryKey(try FileDescriptor.readTypedSecret(vaultRecoveryKeyFd)) }
    return nil
  }

  /// What is to unlock a new vault: a passphrase when nothing was given; a missing key file is made.
  func sourceForNewVault(_ lookup: KeyLookup) throws -> KeySource {
    if let vaultKeyFile { return try lookup.newKeyFile(vaultKeyFile) }
    if let source = try source() { return source }
    return .passphrase(
      try lookup.newPassphrase("New passphrase for the vault: ", option: "--vault-passphrase-fd"))
  }
}
