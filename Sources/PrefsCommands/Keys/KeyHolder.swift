import Coffer

/// A store or its vault, with the key behind its slots.
protocol KeyHolder: SlotHolder {
  /// Checks whether `replaceKey` has the secrets that it needs; changes nothing.
  func checkReplacement(openedBy keys: [KeySource], dropping: Set<Int>) throws
  /// Checks whether the whole store can be rewritten, which `replaceKey` ends with.
  func checkRewritable() throws
  /// Replaces the key behind the slots that `keys` open; all others are dropped.
  ///
  /// - Parameter check: Gets the slots, which no other process can change until this one has; nothing is changed if it throws.
  func replaceKey(
    openedBy keys: [KeySource], dropping: Set<Int>, checking check: ([SlotInfo]) throws -> Void,
    progress: (Double) -> Void
  ) throws
}

extension Database: KeyHolder {
  func checkReplacement(openedBy keys: [KeySource], dropping: Set<Int>) throws {
    try checkRotation(newRootKeyFor: keys, droppingSlots: dropping)
  }

  func replaceKey(
    openedBy keys: [KeySource], dropping: Set<Int>, checking check: ([SlotInfo]) throws -> Void,
    progress: (Double) -> Void
  ) throws {
    try rotate(newRootKeyFor: keys, droppingSlots: dropping, checking: check, progress: progress)
  }
}

extension Vault: KeyHolder {
  func checkReplacement(openedBy keys: [KeySource], dropping: Set<Int>) throws {
    try checkRotation(newKeyFor: keys, droppingSlots: dropping)
  }

  func replaceKey(
    openedBy keys: [KeySource], dropping: Set<Int>, checking check: ([SlotInfo]) throws -> Void,
    progress: (Double) -> Void
  ) throws {
    try rotate(newKeyFor: keys, droppingSlots: dropping, checking: check, progress: progress)
  }
}

/// The slots that a command works on, and the key that opened them.
struct OpenSlots {
  let holder: any KeyHolder
  /// The key that opened them; nil for a vault that was already unlocked.
  let key: KeySource?
  let areOfVault: Bool
  /// Where the key of a slot is that this machine's TPM opens, if there is one.
  let tpmFile: TPMFile
  /// The vault for the slots of a store, and the store for those of its vault.
  let other: any KeyHolder

  /// The slot of the vault, for a store, or of the store, for its vault, that `key` opens.
  func otherSlot(openedBy key: KeySource) throws -> SlotInfo? {
    do {
      return try other.slot(openedBy: key)
    } catch CofferError.vaultNotFound {
      return nil
    }
  }

  /// Refuses to remove or change a slot whose number has come to be that of another one, while a user was asked.
  func requireUnchanged(_ known: [SlotInfo], in present: [SlotInfo]) throws {
    guard let changed = known.first(where: { !present.contains($0) }) else { return }
    throw Failure(
      .conflict,
      "\(SlotText.describe(changed)) was changed or removed by another command meanwhile. Try again.")
  }

  /// What removing or changing a slot does not protect against.
  var warning: String {
    let (key, command) = areOfVault ? ("the key of the vault", "--vault") : ("the root key", "--new-root-key")
    return
      "Anyone who had its secret can still read copies of the store made before and, until \(key) is replaced, later "
      + "ones\(areOfVault ? "" : ", and change the store if they can write the file"): \(CommandHint.text("rotate \(command)"))."
  }

  /// The sentence for a key file that opens another slot's place no longer, now that `slot` opens with a new one.
  ///
  /// - Parameters:
  ///   - slot: The slot, as it was before.
  ///   - newKeyFile: The path of the new key file; nil if something else opens it now.
  func noteOfPlace(of slot: SlotInfo, openedBy opened: SlotInfo?, newKeyFile: String?) -> String? {
    guard let newKeyFile, slot.id == opened?.id, case .keyFile(let old)? = key, old != newKeyFile else { return nil }
    let option = areOfVault ? "--vault-key-file" : "--key-file"
    return
      "\(old) opens \(areOfVault ? "the vault" : "the store") no longer: from now on, name the new key file with "
      + "\(ShellWord.option(option, newKeyFile)), or put it in the place of the old one."
  }

  /// What opens the store or the vault now, and how to lock one of them out.
  func openers() throws -> String {
    let slots = SlotText.list(try holder.slots())
    let (what, option) = areOfVault ? ("the vault", " --vault") : ("it", "")
    return "What opens \(what): \(slots). Lock out a key that has leaked with: "
      + CommandHint.text("key replace SLOT\(option)")
  }
}

extension CommandSession {
  /// Opens the store, and unlocks the vault if the command is about it, for work on key slots; closes it afterwards.
  func withSlots<R>(_ options: SlotOptions, _ body: (OpenSlots) throws -> R) throws -> R {
    let (database, key) = try openWithKey()
    return try using(database) { database in
      guard options.vault else {
        return try OpenSlots(
          holder: database, key: key, areOfVault: false, tpmFile: TPMFile(ofStoreAt: path), other: database.vault
        ).removingTPMFile(body)
      }
      let vaultKey = try VaultAccess(vault: database.vault, session: self).unlock(
        with: options.vaultKey.source(self.options))
      return try namingVault {
        try OpenSlots(
          holder: database.vault, key: vaultKey, areOfVault: true, tpmFile: TPMFile(ofStoreAt: path, isOfVault: true),
          other: database
        ).removingTPMFile(body)
      }
    }
  }
}
