import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Finds the key of the store: from the options, then `PREFS_KEY_FILE`, `PREFS_KEY_COMMAND`, the credential
/// `prefs-key`, the default key file, the TPM, and a prompt on the terminal.
struct KeyLookup {
  let options: SessionOptions
  let store: String

  // MARK: - Opening

  /// Opens the store with the first available source.
  ///
  /// The kinds of its slots are readable without a key. So it never prompts for a passphrase in vain, and a default
  /// key for another store does not prevent the prompt.
  ///
  /// - Parameter usesTPM: Whether the key may be one that only this machine's TPM opens.
  /// - Throws: ``Failure`` with the status `wrongKey` or `keyUnavailable`, which names the other ways to open it.
  func open<R>(_ slots: [SlotInfo], usesTPM: Bool = true, _ open: (KeySource) throws -> R) throws -> R {
    var keyFile: String?
    do {
      return try openAny(slots, usesTPM) { source in
        keyFile = if case .keyFile(let path) = source { path } else { nil }
        return try open(source)
      }
    } catch CofferError.wrongKey {
      // `prefs key replace` changes one store; others, and backups, have the key from before.
      let former = (keyFile.map(KeyFile.replaced) ?? []).map { ShellWord.option("--key-file", $0) }
      let hint = former.isEmpty ? "" : " A former key may open it: \(former.joined(separator: " or "))."
      throw Failure(
        .wrongKey,
        "wrong key: \(keyFile.map { "the key file \($0)" } ?? "it") opens no slot of the store \(store). "
          + "\(SlotText.ways(slots))\(hint) Nothing was changed.")
    } catch CofferError.keyUnavailable(let reason) where slots.count > 1 {
      throw Failure(
        .keyUnavailable, "\(CofferError.keyUnavailable(reason: reason).description) \(SlotText.ways(slots))")
    }
  }

  private func openAny<R>(_ slots: [SlotInfo], _ usesTPM: Bool, _ open: (KeySource) throws -> R) throws -> R {
    if let source = try namedByOption() { return try open(source) }
    let prompt = KeyPrompt(slots, of: store, options: options)
    if slots.contains(where: \.kind.isRandomKey) {
      if let source = try namedByEnvironment() { return try open(source) }
      let keyFile = try StoreLocation.defaultKeyFile(options)
      let tpmFile = usesTPM ? TPMFile(ofStoreAt: store) : nil
      if KeyFile.exists(at: keyFile) {
        options.detail("using the key file \(keyFile)")
        do {
          return try open(options.keyFile(at: keyFile))
        } catch CofferError.wrongKey where prompt.stands || tpmFile?.slot(in: slots) != nil {
          options.detail("the key file \(keyFile) does not open this store")
        }
      }
      if let tpmFile, let source = try sourceOfTPM(tpmFile, slots, prompt) { return try open(source) }
      if !prompt.stands { throw missing(keyFile, slots) }
    }
    return try prompt.open(open)
  }

  /// The key that this machine's TPM opens.
  ///
  /// - Returns: nil if there is none for these slots; also if it does not open, and a person can be asked.
  private func sourceOfTPM(_ file: TPMFile, _ slots: [SlotInfo], _ prompt: KeyPrompt) throws -> KeySource? {
    do {
      guard let key = try TPMKey(in: file, for: slots) else { return nil }
      options.detail("using the key that the TPM has sealed in \(file.path)")
      return try key.source()
    } catch let error as CofferError where error.exitStatus == .keyUnavailable && prompt.stands && Terminal.isThere {
      options.note(error.description)
      return nil
    }
  }

  private func missing(_ keyFile: String, _ slots: [SlotInfo]) -> Failure {
    if KeyFile.isDangling(keyFile) {
      return Failure(
        .keyUnavailable, "the key file \(keyFile) is a dangling symbolic link. Fix the link, or remove it.")
    }
    return Failure(
      .keyUnavailable,
      "the store opens with a key file, but there is none at \(keyFile). Name it with --key-file"
        + (options.app == nil ? " or PREFS_KEY_FILE." : "; PREFS_KEY_FILE is not for an application's store.")
        + (slots.count > 1 ? " \(SlotText.ways(slots))" : ""))
  }

  // MARK: - Creating

  /// The key source for a new store.
  ///
  /// A named key file is created if it is missing.
  ///
  /// - Parameters:
  ///   - withPassphrase: Whether to prompt for a passphrase, twice, unless `--passphrase-fd` supplies it.
  ///   - group: The group that shares the store, and may read a new key file.
  func sourceForNewStore(withPassphrase: Bool, group: String? = nil) throws -> KeySource {
    if let keyFile = options.keyFile { return try newKeyFile(keyFile, group: group) }
    if let source = try namedByOption() { return source }
    if withPassphrase { return .passphrase(try newPassphrase("New passphrase: ", option: "--passphrase-fd")) }
    if options.app == nil, let keyFile = Environment.variable("PREFS_KEY_FILE") {
      return try newKeyFile(keyFile, group: group)
    }
    if let source = try namedByEnvironment() { return source }
    return try newKeyFile(StoreLocation.defaultKeyFile(options), group: group)
  }

  /// Prompts for a new passphrase, twice.
  ///
  /// - Parameter option: The option that supplies it without a terminal.
  func newPassphrase(_ question: String, option: String) throws -> SecretBytes {
    if options.noInput {
      throw Failure(.keyUnavailable, "--no-input forbids asking for a passphrase. Give it with \(option).")
    }
    return try Terminal.newSecret(question, otherwise: "Give it with \(option).")
  }

  /// The key file at `path`, created if it is missing.
  ///
  /// - Throws: ``Failure`` for a named pipe, whose contents could be read only once.
  func newKeyFile(_ path: String, group: String? = nil) throws -> KeySource {
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO {
      throw Failure(.keyUnavailable, "\(path) is a named pipe, which keeps no key. Name a file; nothing was changed.")
    }
    if try KeyFile.create(at: path, group: group) {
      options.note("created the key file \(path). Keep a copy of it: a store that only it opens is lost without it.")
    }
    return options.keyFile(at: path, isOfGroup: group != nil)
  }

  // MARK: - Sources

  private func namedByOption() throws -> KeySource? {
    if let path = options.keyFile { return options.keyFile(at: path) }
    if let descriptor = options.keyFd {
      return .key(try FileDescriptor.readKey(descriptor, passphraseOption: "--passphrase-fd"))
    }
    if let descriptor = options.passphraseFd {
      return .passphrase(try FileDescriptor.readTypedSecret(descriptor))
    }
    if let descriptor = options.recoveryKeyFd {
      return .recoveryKey(try FileDescriptor.readTypedSecret(descriptor))
    }
    return nil
  }

  private func namedByEnvironment() throws -> KeySource? {
    // The variables are for the default store, not for an application's own.
    guard options.app == nil else { return nil }
    if let path = Environment.variable("PREFS_KEY_FILE") {
      options.detail("using the key file \(path), from PREFS_KEY_FILE")
      return options.keyFile(at: path)
    }
    if let command = Environment.variable("PREFS_KEY_COMMAND") {
      options.detail("using the output of PREFS_KEY_COMMAND")
      return .keyCommand(command)
    }
    if let folder = Environment.variable("CREDENTIALS_DIRECTORY"), KeyFile.exists(at: folder + "/prefs-key") {
      options.detail("using the credential prefs-key")
      return .credential("prefs-key")
    }
    return nil
  }
}
