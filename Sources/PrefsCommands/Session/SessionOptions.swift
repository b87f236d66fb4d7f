import Coffer

/// How to find and open the store, as ``CommonOptions`` say it.
///
/// Plain values: making those that the argument parser fills is work that a bare `get` can do without.
package struct SessionOptions: Talking {
  var store: String?
  var app: String?
  var keyFile: String?
  var keyFd: Int32?
  var passphraseFd: Int32?
  var recoveryKeyFd: Int32?
  var actor: String?
  /// What unlocks the vault.
  var vaultKeyFile: String?
  var vaultKeyFd: Int32?
  var noInput = false
  /// The environments that are used, and have to be there: one that is misspelt would show its parent and nothing else.
  var environments: [CollectionEnvironment] = []
  var timeout: Double?
  /// Whether a value is set, too, that is not as its setting is declared.
  var allowsUndeclared = false
  /// Whether no store is made.
  var mustExist = false
  /// Whether a store is opened that is older than the one that was used here last.
  var acceptsOlderStore = false
  package var quiet = false
  package var verbose = false
}

extension SessionOptions {
  /// The key file at `path`, with a word about one that others can read.
  func keyFile(at path: String) -> KeySource {
    if let problem = KeyFile.accessProblem(at: path, ofStoreAt: try? StoreLocation.store(self)) {
      note("\(problem) Run: chmod 600 \(path)")
    }
    return .keyFile(path)
  }
}

extension SessionOptions {
  /// Whether a missing store is an error, whatever the command would do.
  var requiresStore: Bool {
    mustExist || Environment.variable("PREFS_MUST_EXIST").map { $0 != "0" } ?? false
  }

  /// What unlocks the vault: the options, then `PREFS_VAULT_KEY_FILE`.
  package func vaultKey() throws -> KeySource? {
    if let vaultKeyFd { return .key(try FileDescriptor.readKey(vaultKeyFd)) }
    return vaultKeyFileNamed.map { keyFile(at: $0) }
  }

  /// The key file of the vault that is named.
  var vaultKeyFileNamed: String? {
    // What the environment names is for another store than an application's own.
    vaultKeyFile ?? (app == nil ? Environment.variable("PREFS_VAULT_KEY_FILE") : nil)
  }
}

/// Options that say how much to tell.
package protocol Talking {
  var quiet: Bool { get }
  var verbose: Bool { get }
}

extension Talking {
  /// Tells something that helps but is not asked for, unless `--quiet`.
  package func note(_ text: String) {
    if !quiet { Message.error(text) }
  }

  /// Tells what happens inside, when `--verbose`.
  package func detail(_ text: String) {
    if verbose { Message.error(text) }
  }
}
