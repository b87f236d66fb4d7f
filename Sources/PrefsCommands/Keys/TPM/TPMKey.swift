import Coffer

/// A key of the file beside a store, whose slot is there.
struct TPMKey {
  let slot: SlotInfo
  private let file: TPMFile
  private let contents: TPMFile.Contents

  /// - Throws: `CofferError.keyUnavailable` when the file is damaged.
  init?(in file: TPMFile, for slots: [SlotInfo]) throws {
    guard let contents = try file.read(), let slot = slots.first(where: contents.names) else { return nil }
    (self.file, self.contents, self.slot) = (file, contents, slot)
  }

  /// The key, from this machine's TPM.
  ///
  /// - Throws: `CofferError.keyUnavailable`.
  func source() throws -> KeySource {
    do {
      return try TPM.using(forStoreAt: file.store) { .key(try $0.unseal(contents.sealed)) }
    } catch CofferError.keyUnavailable(let reason) {
      throw CofferError.keyUnavailable(reason: "the TPM does not open \(file.path): \(reason)")
    }
  }
}

// MARK: - Doctor

extension TPMKey {
  /// What is wrong with the key beside a store, and with that of its vault, in sentences.
  static func problems(of database: Database, _ store: String) -> [String] {
    problems(TPMFile(ofStoreAt: store), database)
      + problems(TPMFile(ofStoreAt: store, isOfVault: true), database.vault)
  }

  private static func problems(_ file: TPMFile, _ holder: any SlotHolder) -> [String] {
    guard FilePlace.isTaken(file.path) else {
      // Slots that are damaged are not its concern then.
      guard let slot = (try? holder.slots()).flatMap(file.slot) else { return [] }
      return [
        "\(SlotText.describe(slot)) opens with a key that a TPM has sealed in \(file.path), which is gone. Put it back, or remove "
          + "the slot."
      ]
    }
    // It is the concern of the user who may.
    guard file.canBeRead else { return [] }
    let isOfNone = "\(file.path) is of no slot. Remove it, unless an earlier store is to come back."
    do {
      let slots = try holder.slots()
      guard let key = try TPMKey(in: file, for: slots) else {
        guard let slot = file.slot(in: slots) else { return [isOfNone] }
        return [
          "\(SlotText.describe(slot)) opens with a key that a TPM has sealed, and \(file.path) has that of another slot. Put back the "
            + "file, or remove the slot."
        ]
      }
      guard try holder.slot(openedBy: key.source())?.id == key.slot.id else {
        return [
          "\(file.path) does not open \(SlotText.describe(key.slot)). Remove that slot, and add it again with --tpm."
        ]
      }
      guard !OpenSlots.haveRecovery(slots) else { return [] }
      return [
        "\(SlotText.describe(key.slot)) opens with this machine's TPM, and no recovery key or passphrase is beside it."
      ]
    } catch CofferError.vaultNotFound {
      return [isOfNone]
    } catch {
      return ["\(error)"]
    }
  }
}

// MARK: - Slots

extension OpenSlots {
  /// Adds a slot for a new key that this machine's TPM seals, and writes the key's file.
  func addTPM(label: String) throws -> SlotInfo {
    try checkForTPM(holder.slots())
    return try TPM.using(forStoreAt: tpmFile.store) { tpm in
      let sealed = try tpm.seal(SecretBytes.random(count: 32))
      let earlier = tpmFile.readIfWhole()
      var isWritten = false
      do {
        // What the TPM gives back is what the slot takes.
        return try tpm.load(sealed) { program in
          try holder.addSlot(.keyCommand("exec \(program.line)"), label: label) { slot, present in
            // Another process may have added one meanwhile.
            try checkForTPM(present)
            try tpmFile.write(TPMFile.Contents(slot: slot, sealed: sealed))
            isWritten = true
          }
        }
      } catch {
        if isWritten, try tpmFile.isOfNone(of: holder.slots()) {
          if let earlier { try tpmFile.write(earlier) } else { tpmFile.remove() }
        }
        throw error
      }
    }
  }

  private func checkForTPM(_ slots: [SlotInfo]) throws {
    try tpmFile.checkPlace()
    if let slot = tpmFile.slot(in: slots) {
      throw Failure(
        .conflict,
        "\(SlotText.describe(slot)) opens with a TPM already. To make another, remove it first: "
          + CommandHint.text("key remove \(slot.id)\(vaultOption)") + ". Nothing was changed.")
    }
    guard !Self.haveRecovery(slots) else { return }
    throw Failure(
      .refused,
      "a TPM's key is lost with the machine, or when its firmware clears it, and \(what) has neither a recovery key nor a "
        + "passphrase. Add one first: \(CommandHint.text("key recovery\(vaultOption)")). Nothing was changed.")
  }

  /// Refuses to leave the TPM's slot without a recovery key or a passphrase.
  ///
  /// - Parameters:
  ///   - slots: All slots.
  ///   - dropped: The slots that go, or open with a random key from now on.
  ///   - addsRecovery: Whether a recovery key or a passphrase takes the place of one.
  func requireRecovery(in slots: [SlotInfo], without dropped: Set<Int>, adding addsRecovery: Bool = false) throws {
    let left = slots.filter { !dropped.contains($0.id) }
    guard let slot = tpmFile.slot(in: left), !addsRecovery, !Self.haveRecovery(left) else { return }
    throw Failure(
      .refused,
      "\(SlotText.describe(slot)) opens with this machine's TPM, and no recovery key or passphrase would be left beside it. Add "
        + "one first: \(CommandHint.text("key recovery\(vaultOption)")). Nothing was changed.")
  }

  /// Runs `body`, and removes the TPM's file if its slot is gone then.
  func removingTPMFile<R>(_ body: (OpenSlots) throws -> R) throws -> R {
    // One that is of no slot may be of an earlier store.
    let wasOfNone = try tpmFile.isOfNone(of: holder.slots())
    let result = Result { try body(self) }
    if !wasOfNone, let slots = try? holder.slots(), tpmFile.isOfNone(of: slots) { tpmFile.remove() }
    return try result.get()
  }

  private var what: String { areOfVault ? "the vault" : "the store" }
  private var vaultOption: String { areOfVault ? " --vault" : "" }

  /// Whether one of the slots opens without any file.
  static func haveRecovery(_ slots: [SlotInfo]) -> Bool { slots.contains { !$0.kind.isRandomKey } }
}
