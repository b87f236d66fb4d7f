import Coffer
import Synchronization

/// A command's access to the vault of its store.
struct VaultAccess {
  let vault: Vault
  let session: CommandSession

  // MARK: - Unlocking

  /// Unlocks the vault with `named`, else with the key kept by `prefs unlock`, else with a prompt.
  ///
  /// - Returns: The source that unlocked it; nil when its key was kept.
  func unlock(with named: KeySource?) throws -> KeySource? {
    try requireVault()
    if named == nil, try unlockWithKeptKey() { return nil }
    return try unlockAgain(with: named)
  }

  /// Unlocks the vault with `named`, else with this machine's TPM if it has a slot, else with a prompt.
  func unlockAgain(with named: KeySource?) throws -> KeySource {
    try unlockAgain(with: named) { try vault.unlock($0) }
  }

  /// Unlocks the vault in that way, and keeps its key for other commands; a `prefs lock` meanwhile wins.
  ///
  /// - Throws: ``Failure`` with the status `conflict` if there was one.
  func unlockAndKeep(with named: KeySource?, for time: TimeToLive) throws {
    let state = try state()
    _ = try unlockAgain(with: named) { key in
      // Stretching a passphrase takes a while, which begins when it has been given.
      let mark = try state.watchLocks()
      func requireNoLock() throws {
        guard state.lockMark.isLater(than: mark) else { return }
        throw Failure(
          .conflict, "the vault was locked while it was being unlocked, and stays locked. To unlock it, try again.")
      }
      try vault.unlock(key)
      try requireNoLock()
      try state.keep(vault.vaultKey(), for: time)
      do { try requireNoLock() } catch {
        try state.forget()
        throw error
      }
    }
  }

  private func unlockAgain(with named: KeySource?, by unlock: (KeySource) throws -> Void) throws -> KeySource {
    try requireVault()
    if let named {
      try session.namingVault { try unlock(named) }
      return named
    }
    if let key = try sourceOfTPM() {
      try session.namingVault { try unlock(key) }
      return key
    }
    guard try vault.slots().contains(where: { !$0.kind.isRandomKey }) else {
      throw Failure(.keyUnavailable, "the vault opens with a key file. Name it with --vault-key-file.")
    }
    return try session.namingVault {
      try prompt().open { key in
        try unlock(key)
        return key
      }
    }
  }

  /// The key that this machine's TPM opens.
  ///
  /// Only for a command that is about the vault, as `prefs unlock` is: otherwise no `prefs lock` would lock it.
  ///
  /// - Returns: nil if there is none; also if it does not open, and a person can be asked.
  private func sourceOfTPM() throws -> KeySource? {
    do {
      return try TPMKey(in: TPMFile(ofStoreAt: session.path, isOfVault: true), for: vault.slots())?.source()
    } catch let error as CofferError where error.exitStatus == .keyUnavailable {
      guard try prompt().stands, Terminal.isThere else {
        throw Failure(
          .keyUnavailable,
          "\(error.description) Unlock the vault with its recovery key or passphrase: --vault-recovery-key-fd, "
            + "--vault-passphrase-fd.")
      }
      session.options.note(error.description)
      return nil
    }
  }

  /// - Throws: ``Failure`` with the status `notFound` when there is no vault.
  func requireVault() throws {
    guard try vault.exists() else {
      throw Failure(
        .notFound,
        "the store has no vault yet. Create it with its first collection: \(CommandHint.text("seal COLLECTION"))")
    }
  }

  /// Unlocks the vault, if there is one, with a named or kept key before anything is read or set: while it is locked, it would go
  /// unnoticed if someone had marked a sealed collection as not sealed.
  ///
  /// - Returns: Which key unlocked it; nil if none did.
  @discardableResult
  func unlockIfAtHand() throws -> KeyAtHand? {
    guard vault.wasFound, !vault.isUnlocked else { return nil }
    guard let named = try session.options.vaultKey() else { return try unlockWithKeptKey() ? .keptKey : nil }
    do {
      try vault.unlock(named)
      return .namedKey
    } catch let error as CofferError where error == .wrongKey || error.isOfMissingKey {
      if try unlockWithKeptKey() { return .keptKey }
      guard session.options.mayNameVaultKeyOfOthers else { return try session.namingVault { throw error } }
      guard Self.reported.withLock({ $0.insert(session.path).inserted }) else { return nil }
      session.options.note(
        "the vault of \(session.path) does not open with the key at hand: whether its sealed collections are still sealed was not "
          + "checked.")
      return nil
    }
  }

  /// A key that unlocks the vault unasked.
  enum KeyAtHand {
    case namedKey
    /// That of `prefs unlock`.
    case keptKey
  }

  /// The stores whose vault was reported not to open: commands that watch try repeatedly.
  private static let reported = Mutex<Set<String>>([])

  /// Unlocks the vault for a value, if a prompt is enough for that.
  func unlock(for collection: String?) throws {
    do {
      if let named = try session.options.vaultKey() { return try session.namingVault { try vault.unlock(named) } }
    } catch let failure as Failure {
      // The variable may name the key of another store's vault.
      guard failure.status == .wrongKey, try unlockWithKeptKey() else { throw failure }
      return
    }
    if try unlockWithKeptKey() { return }
    let prompt = try prompt()
    guard prompt.stands, Terminal.isThere else {
      let what = collection.map { "\(DisplayText.collection($0)) is sealed, and the vault is locked" }
      // The store to unlock may differ from that of the command.
      let command = (["prefs unlock"] + CommandHint.options(session.options.ofStore)).joined(separator: " ")
      throw Failure(
        .keyUnavailable,
        "\(what ?? "the vault is locked"): run `\(command)`, or name its key with --vault-key-file or PREFS_VAULT_KEY_FILE."
      )
    }
    try session.namingVault { try prompt.open { try vault.unlock($0) } }
  }

  /// Unlocks the vault for a verification if its key is at hand, without a prompt.
  ///
  /// - Returns: Why the vault does not open with it, as a sentence; nil if it does, or there is no vault or no key.
  func problemOfUnlocking() throws -> String? {
    do {
      guard try vault.exists(), try !unlockWithKeptKey(), let named = try session.options.vaultKey() else { return nil }
      try vault.unlock(named)
      return nil
    } catch CofferError.wrongKey {
      return "The vault does not open with the key at hand, so that sealed values were not checked."
    } catch CofferError.keyUnavailable {
      return nil
    } catch CofferError.damaged {
      // The verification reports what is wrong with a record that does not parse, but not why another one fails its MAC.
      return "The vault does not open: its record is damaged, so that sealed values were not checked."
    }
  }

  private func prompt() throws -> KeyPrompt {
    KeyPrompt(
      try vault.slots(), of: "the vault of \(session.path)", options: session.options, prefix: "--vault-")
  }

  // MARK: - The kept key

  /// Where the vault's key is kept between commands.
  func state() throws -> UnlockState {
    UnlockState(storeID: try Database.storeID(at: session.path), options: session.options)
  }

  private func unlockWithKeptKey() throws -> Bool {
    let state = try state()
    guard let key = state.key() else { return false }
    do {
      try vault.unlock(vaultKey: key)
      return true
    } catch CofferError.wrongKey {
      // The vault has a new key since.
      try state.forget()
      return false
    }
  }
}

extension CofferError {
  /// Whether a named key does not exist.
  fileprivate var isOfMissingKey: Bool { if case .keyUnavailable = self { true } else { false } }
}

extension CommandSession {
  /// Runs `body`, reporting a wrong key as the vault's, not the store's.
  func namingVault<R>(_ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch CofferError.wrongKey {
      throw Failure(.wrongKey, "wrong key: it opens no slot of the vault of \(path). Nothing was changed.")
    }
  }

  /// Runs `body`, with the vault unlocked if its key is at hand; if it needs the vault, unlocks it if possible and runs `body`
  /// again.
  ///
  /// The same if a transaction found no room: its log may have been checkpointed since, and starts over. And if another program
  /// wrote to a store that can only be read as an image.
  package func unlocking<R>(_ database: Database, _ body: () throws -> R) throws -> R {
    try VaultAccess(vault: database.vault, session: self).unlockIfAtHand()
    do {
      return try Self.whileImageChanges(body)
    } catch CofferError.vaultLocked(let collection) {
      try VaultAccess(vault: database.vault, session: self).unlock(for: collection)
      return try body()
    } catch CofferError.diskFull(let full) where OutputFile.isPart(full, ofStore: path) {
      return try body()
    }
  }
}
