import Coffer

/// Replaces the key behind the remaining slots, after finding the secret of each.
struct KeyReplacement {
  let slots: OpenSlots
  /// The slots when it was decided which are dropped.
  let known: [SlotInfo]
  /// The sources given for the remaining slots.
  var keys: [KeySource] = []
  var dropped: Set<Int> = []
  let options: SessionOptions

  /// Replaces the key.
  ///
  /// The source that opened the slots need not be given again.
  func run() throws {
    try replace(openedBy: sources())
  }

  /// The sources of all slots that stay; nothing is changed yet.
  ///
  /// - Throws: ``Failure`` with the status `refused` when some are missing, and cannot be asked for.
  func sources() throws -> [KeySource] {
    let sources = try foundSources()
    try requireUnchanged(in: slots.holder.slots())
    return sources
  }

  private func requireUnchanged(in present: [SlotInfo]) throws {
    try slots.requireUnchanged(known.filter { dropped.contains($0.id) }, in: present)
  }

  private func foundSources() throws -> [KeySource] {
    var sources = (slots.key.map { [$0] } ?? []) + keys
    var missing: [SlotInfo]
    do {
      missing = try missingSlots(sources)
    } catch CofferError.wrongKey where slots.key != nil {
      // The slot that was opened may be among those to be removed; if another one is wrong, this finds out again.
      sources = keys
      missing = try missingSlots(sources)
    }
    if let key = try TPMKey(in: slots.tpmFile, for: missing) {
      sources.append(try sourceOfTPM(key))
      missing = try missingSlots(sources)
    }
    guard !missing.isEmpty else { return sources }
    sources += try ask(missing)
    try slots.holder.checkReplacement(openedBy: sources, dropping: dropped)
    return sources
  }

  /// The slots that still need a source.
  private func missingSlots(_ sources: [KeySource]) throws -> [SlotInfo] {
    do {
      try slots.holder.checkReplacement(openedBy: sources, dropping: dropped)
      return []
    } catch CofferError.slotsNotOpened(let ids) {
      return try slots.holder.slots().filter { ids.contains($0.id) }
    }
  }

  /// Replaces the key, given the sources of all slots that stay.
  func replace(openedBy keys: [KeySource]) throws {
    func check(_ present: [SlotInfo]) throws {
      try requireUnchanged(in: present)
      try slots.requireRecovery(in: present, without: dropped)
    }
    try ProgressBar.during("re-encrypting", options) {
      try slots.holder.replaceKey(openedBy: keys, dropping: dropped, checking: check, progress: $0)
    }
  }

  // MARK: - Slots that are left

  private func sourceOfTPM(_ key: TPMKey) throws -> KeySource {
    do {
      return try key.source()
    } catch let error as CofferError where error.exitStatus == .keyUnavailable {
      throw Failure(
        .keyUnavailable,
        "\(error.description) A new key needs the secret of every slot that stays: let \(SlotText.describe(key.slot)) go with "
          + "--drop \(key.slot.id). Nothing was changed.")
    }
  }

  /// Asks for the sources of `missing`, one after the other.
  private func ask(_ missing: [SlotInfo]) throws -> [KeySource] {
    let canAsk = !options.noInput && missing.allSatisfy { !$0.kind.isRandomKey } && Terminal.isThere
    guard canAsk else { throw refusal(missing) }
    return try missing.map { slot in
      let name =
        DisplayText.escapingControls(slot.label.isEmpty ? "slot \(slot.id)" : "slot \(slot.id) \"\(slot.label)\"")
        + (slots.areOfVault ? " of the vault" : "")
      return slot.kind == .recoveryKey
        ? .recoveryKey(try Terminal.secret("Recovery key of \(name): "))
        : .passphrase(try Terminal.secret("Passphrase of \(name): "))
    }
  }

  private func refusal(_ missing: [SlotInfo]) -> Failure {
    let ways = missing.map { slot in
      let option =
        switch slot.kind {
        case .passphrase: "--keep-passphrase-fd"
        case .recoveryKey: "--keep-recovery-key-fd"
        case .keyCommand: "--keep-key-command"
        default: "--keep-key-file"
        }
      return "\(SlotText.describe(slot)) with \(option)"
    }
    return Failure(
      .refused,
      "a new key needs the secret of every slot that stays. Give that of \(ways.joined(separator: ", of ")), or let "
        + "it go with --drop. Nothing was changed.")
  }
}
