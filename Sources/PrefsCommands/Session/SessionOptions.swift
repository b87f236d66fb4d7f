import Coffer

/// The options to find and open the store, from ``CommonOptions``.
///
/// Plain values: a bare `get` would not need the work of creating those that the argument parser fills.
package struct SessionOptions: Talking {
  var store: String?
  var app: String?
  var keyFile: String?
  var keyFd: Int32?
  var passphraseFd: Int32?
  var recoveryKeyFd: Int32?
  var actor: String?
  /// The key file of the vault.
  var vaultKeyFile: String?
  var vaultKeyFd: Int32?
  package var noInput = false
  /// The environments in use, which must exist: a misspelt one would silently show only its parent.
  var environments: [CollectionEnvironment] = []
  var timeout: Double?
  /// Whether to set values that violate their declarations.
  var allowsBadValues = false
  /// Whether to set keys that are not declared, in a collection with declared settings.
  package var allowsUndeclared = false
  /// Whether a missing store is an error instead of being created.
  var mustExist = false
  /// Whether to open a store that is older than the one last used here.
  var acceptsOlderStore = false
  /// Whether the store is the second one of a command.
  var isOfOtherStore = false
  package var quiet = false
  package var verbose = false
}

extension SessionOptions {
  /// The key file at `path`; warns if others can read it.
  ///
  /// - Parameter isOfGroup: Whether the members of a group may read it.
  func keyFile(at path: String, isOfGroup: Bool = false) -> KeySource {
    let problem = KeyFile.accessProblem(at: path, ofStoreAt: try? StoreLocation.store(self), isOfGroup: isOfGroup)
    if let problem { note(problem) }
    return .keyFile(path)
  }
}

extension SessionOptions {
  /// Whether a missing store is an error for any command.
  var requiresStore: Bool {
    mustExist || Environment.variable("PREFS_MUST_EXIST").map { $0 != "0" } ?? false
  }

  /// The source that unlocks the vault: the options, then `PREFS_VAULT_KEY_FILE`.
  package func vaultKey() throws -> KeySource? {
    if let vaultKeyFd {
      let option = "prefs unlock --vault-passphrase-fd"
      return .key(try FileDescriptor.readKey(vaultKeyFd, passphraseOption: option))
    }
    return vaultKeyFileNamed.map { keyFile(at: $0) }
  }

  /// Whether the named key may be for the vault of another store: an option for the first of two stores, or the variable.
  var mayNameVaultKeyOfOthers: Bool { isOfOtherStore || vaultKeyFd == nil && vaultKeyFile == nil }

  /// The named key file of the vault.
  var vaultKeyFileNamed: String? {
    // The variable is for the default store, not for an application's own.
    vaultKeyFile ?? (app == nil ? Environment.variable("PREFS_VAULT_KEY_FILE") : nil)
  }
}

extension SessionOptions {
  /// The given options that name the store and its key file.
  var ofStore: [(name: String, value: String)] {
    [("-d", store), ("--app", app), ("--key-file", keyFile)].compactMap { name, value in value.map { (name, $0) } }
  }
}
