import ArgumentParser
import Coffer

/// The options that every command takes, before or after its name.
package struct CommonOptions: ParsableArguments, CommonArguments, Talking {
  package init() {}

  @Option(
    name: [.customShort("d"), .long],
    help: ArgumentHelp("The store.", valueName: "path"), completion: .file())
  var store: String?

  @Option(
    help: ArgumentHelp(
      "Use the store, the key file and the collection of an application's Preferences by default.",
      valueName: "identifier"))
  package var app: String?

  @Option(
    name: [.customShort("c"), .long], parsing: .unconditionalSingleValue,
    help: ArgumentHelp("The collection; a KEY may then contain slashes.", valueName: "name"),
    completion: Completions.collections)
  package var collection: [String] = []

  @Option(
    help: ArgumentHelp(
      "An environment of the collection, see `prefs env`; values not set there come from the collection.",
      valueName: "name"), completion: Completions.environments)
  package var env: String?

  @Option(help: ArgumentHelp("Open the store with this key file.", valueName: "path"), completion: .file())
  var keyFile: String?

  @Option(help: ArgumentHelp("Read the key from this file descriptor.", valueName: "n"))
  var keyFd: Int32?

  @Option(help: ArgumentHelp("Read the passphrase from this file descriptor.", valueName: "n"))
  var passphraseFd: Int32?

  @Option(help: ArgumentHelp("Read a recovery key from this file descriptor.", valueName: "n"))
  var recoveryKeyFd: Int32?

  @Option(
    help: ArgumentHelp(
      "The person or job behind a change, for prefs log; by default PREFS_ACTOR.", valueName: "name"))
  var actor: String?
  @Option(help: ArgumentHelp("Unlock the vault with this key file.", valueName: "path"), completion: .file())
  package var vaultKeyFile: String?

  @Option(help: ArgumentHelp("Read the key of the vault from this file descriptor.", valueName: "n"))
  package var vaultKeyFd: Int32?

  @Flag(help: "Do not create a store: a missing one is an error.")
  var mustExist = false

  @Flag(help: "Never ask; fail instead.")
  package var noInput = false

  @Option(help: ArgumentHelp("How long to wait for a busy store.", valueName: "seconds"))
  var timeout: Double?

  @Option(help: ArgumentHelp("Colour: auto, always or never.", valueName: "when"))
  var color: ColorChoice = .auto

  @Flag(name: .shortAndLong, help: "Omit notes and hints.")
  package var quiet = false

  @Flag(name: .shortAndLong, help: "Show which store and which key are used.")
  package var verbose = false

  package mutating func validate() throws {
    for option in [\Self.store, \.app, \.env, \.keyFile, \.actor, \.vaultKeyFile] {
      self[keyPath: option] = self[keyPath: option].map(CommandArguments.value)
    }
    if store == "" { throw ValidationError("--store needs a path.") }
    if app == "" { throw ValidationError("--app needs an identifier, such as org.example.editor.") }
    if env == "" { throw ValidationError("--env needs the name of an environment, such as staging.") }
    if keyFile == "" { throw ValidationError("--key-file needs a path.") }
    let descriptors = [keyFd, passphraseFd, recoveryKeyFd].compactMap(\.self)
    if descriptors.count + (keyFile == nil ? 0 : 1) > 1 {
      throw ValidationError("Use one of --key-file, --key-fd, --passphrase-fd and --recovery-key-fd.")
    }
    if vaultKeyFile == "" { throw ValidationError("--vault-key-file needs a path.") }
    if vaultKeyFile != nil, vaultKeyFd != nil {
      throw ValidationError("Use one of --vault-key-file and --vault-key-fd.")
    }
    if let vaultKeyFd, descriptors.contains(vaultKeyFd) {
      throw ValidationError("Each secret needs a file descriptor of its own.")
    }
    try DescriptorOptions.check(descriptors + [vaultKeyFd].compactMap(\.self))
    if let timeout, !(timeout >= 0 && timeout <= 1_000_000) {
      throw ValidationError("--timeout needs a number of seconds from 0 to 1000000.")
    }
  }

  /// The style of standard output.
  package var style: Style { Style(isOn: color.applies(to: 1)) }

  func checkCollectionCount() throws {
    guard collection.count <= 1 else {
      throw Failure(.usage, "-c was given \(collection.count) times; only one collection is possible here.")
    }
  }

  /// The options for a session.
  package var ofSession: SessionOptions {
    SessionOptions(
      store: store, app: app, keyFile: keyFile, keyFd: keyFd, passphraseFd: passphraseFd, recoveryKeyFd: recoveryKeyFd,
      actor: actor, vaultKeyFile: vaultKeyFile, vaultKeyFd: vaultKeyFd, noInput: noInput, timeout: timeout,
      mustExist: mustExist,
      quiet: quiet, verbose: verbose)
  }
}

/// Rules for all options that name a file descriptor.
enum DescriptorOptions {
  static func check(_ descriptors: [Int32]) throws {
    if descriptors.contains(where: { $0 < 0 }) { throw ValidationError("A file descriptor is not negative.") }
  }
}

/// When to use colour.
enum ColorChoice: String, CaseIterable, ExpressibleByArgument {
  case auto, always, never

  /// Whether to colour output to `descriptor`.
  ///
  /// With `auto`, respects `NO_COLOR` (no-color.org).
  func applies(to descriptor: Int32) -> Bool {
    switch self {
    case .always: true
    case .never: false
    case .auto:
      Environment.variable("NO_COLOR") == nil && Environment.variable("TERM") != "dumb"
        && Terminal.isTerminal(descriptor)
    }
  }
}
