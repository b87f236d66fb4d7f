import ArgumentParser
import Coffer

/// The options for the secret of a new slot.
struct NewKeyOptions: ParsableArguments {
  @Flag(help: "A passphrase, asked for twice without echo.")
  var passphrase = false

  @Option(help: ArgumentHelp("A passphrase, read from this file descriptor.", valueName: "n"))
  var newPassphraseFd: Int32?

  @Option(help: ArgumentHelp("A key file; it is created if missing.", valueName: "path"), completion: .file())
  var newKeyFile: String?

  @Option(help: ArgumentHelp("The output of this command line: 32 bytes, or a key file.", valueName: "command"))
  var keyCommand: String?

  @Option(help: ArgumentHelp("The systemd credential with this name.", valueName: "name"))
  var credential: String?

  @Option(
    parsing: .unconditional, help: ArgumentHelp("A label for the slot, up to 64 bytes.", valueName: "text"))
  var label: String?

  @OptionGroup var stretching: StretchingOptions

  /// Whether no kind of secret was given.
  var isEmpty: Bool {
    !passphrase && newPassphraseFd == nil && !isRandomKey
  }

  /// Whether a kind of random key was given.
  var isRandomKey: Bool { newKeyFile != nil || keyCommand != nil || credential != nil }

  mutating func validate() throws {
    let ways = [passphrase, newPassphraseFd != nil, newKeyFile != nil, keyCommand != nil, credential != nil]
    if ways.filter({ $0 }).count > 1 {
      throw ValidationError(
        "Use one of --passphrase, --new-passphrase-fd, --new-key-file, --key-command and --credential.")
    }
    for (option, text) in [("new-key-file", newKeyFile), ("key-command", keyCommand), ("credential", credential)]
    where text == "" {
      throw ValidationError("--\(option) needs a value.")
    }
    try DescriptorOptions.check([newPassphraseFd].compactMap(\.self))
    if stretching.areGiven, isRandomKey { throw ValidationError("Only a passphrase can be stretched.") }
    try SlotReference.check(label: label)
  }

  /// The source for the slot: a passphrase by default.
  func source(_ lookup: KeyLookup) throws -> KeySource {
    if let newKeyFile {
      try StoreLocation.requireFolder(of: newKeyFile)
      return try lookup.newKeyFile(newKeyFile)
    }
    if let keyCommand { return .keyCommand(keyCommand) }
    if let credential { return .credential(credential) }
    if let newPassphraseFd { return .passphrase(try FileDescriptor.readTypedSecret(newPassphraseFd)) }
    return .passphrase(try lookup.newPassphrase("New passphrase: ", option: "--new-passphrase-fd"))
  }
}
