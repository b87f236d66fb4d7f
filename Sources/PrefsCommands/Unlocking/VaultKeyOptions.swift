import ArgumentParser
import Coffer

/// The options that unlock the vault, beside the common options for keys.
struct VaultKeyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Read the passphrase of the vault from this file descriptor.", valueName: "n"))
  var vaultPassphraseFd: Int32?

  @Option(help: ArgumentHelp("Read the recovery key of the vault from this file descriptor.", valueName: "n"))
  var vaultRecoveryKeyFd: Int32?

  /// Whether nothing was given.
  var isEmpty: Bool { descriptors.isEmpty }

  private var descriptors: [Int32] { [vaultPassphraseFd, vaultRecoveryKeyFd].compactMap(\.self) }

  mutating func validate() throws { try DescriptorOptions.check(descriptors) }

  /// The source that unlocks the vault; nil if no option was given.
  func source(_ options: SessionOptions) throws -> KeySource? {
    let keys = [options.vaultKeyFile != nil, options.vaultKeyFd != nil]
    if descriptors.count + keys.filter({ $0 }).count > 1 {
      throw Failure(
        .usage, "Use one of --vault-key-file, --vault-key-fd, --vault-passphrase-fd and --vault-recovery-key-fd.")
    }
    if let vaultPassphraseFd { return .passphrase(try FileDescriptor.readTypedSecret(vaultPassphraseFd)) }
    if let vaultRecoveryKeyFd { return .recoveryKey(try FileDescriptor.readTypedSecret(vaultRecoveryKeyFd)) }
    return try options.vaultKey()
  }

  /// The source for a new vault: a passphrase by default; a missing key file is created.
  func sourceForNewVault(_ lookup: KeyLookup) throws -> KeySource {
    if isEmpty, lookup.options.vaultKeyFd == nil, let file = lookup.options.vaultKeyFileNamed {
      return try lookup.newKeyFile(file)
    }
    if let source = try source(lookup.options) { return source }
    return .passphrase(
      try lookup.newPassphrase("New passphrase for the vault: ", option: "--vault-passphrase-fd"))
  }
}
