import CofferStorage

extension Database {
  /// The slots of the store: the secrets that open it.
  ///
  /// - Throws: `CofferError.unsupported` for a store in memory; `.closed`, `.damaged` or `.inputOutput`.
  public func slots() throws -> [SlotInfo] {
    let store = try storeOnDisk()
    return try CofferError.translating {
      try store.refresh()
      return store.envelope.slots.map(SlotInfo.init)
    }
  }

  /// Adds a slot, so that another secret opens the store.
  ///
  /// ```swift
  /// try database.addSlot(.passphrase(passphrase), label: "Ada")
  /// ```
  ///
  /// Stretching a passphrase takes long, and is done before any lock is taken.
  ///
  /// - Parameters:
  ///   - key: The new secret.
  ///   - label: A name for people, at most 64 bytes.
  ///   - stretching: The cost of each guess at a passphrase. Ignored for random keys.
  /// - Throws: `CofferError.secretInUse` when it opens a slot already; `.slotsFull` when there are 16; `.unsupported` when the label is too long, the cost is out of
  ///   bounds, or the store is in memory; `.keyUnavailable`, and as `Connection.readWrite`.
  @discardableResult
  public func addSlot(
    _ key: KeySource, label: String = "", stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    let secret = try prepare(key, label, stretching)
    return SlotInfo(try changeEnvelope({ try $0.addSlot(secret) }) { .slotAdded($0.id) })
  }

  /// Adds a recovery key: a random key to write down, in case the other keys are lost.
  ///
  /// - Returns: The key, which cannot be retrieved later.
  /// - Throws: As `addSlot(_:label:stretching:)`.
  public func addRecoveryKey(label: String = "") throws -> RecoveryKey {
    let key = try CofferError.translating { try RecoveryKey() }
    try addSlot(.recoveryKey(key.text), label: label)
    return key
  }

  /// Replaces a slot's secret; the ID stays.
  ///
  /// Someone with the old secret and a copy of the file can still read that copy, and what is written later under the same
  /// root key; `rotate(newRootKeyFor:droppingSlots:progress:)` ends that.
  ///
  /// - Parameters:
  ///   - id: The slot.
  ///   - key: The new secret.
  ///   - label: The new label; nil keeps the current one.
  ///   - stretching: As with `addSlot(_:label:stretching:)`.
  /// - Throws: `CofferError.slotNotFound`; as `addSlot(_:label:stretching:)`. The same passphrase is accepted if it is to be
  ///   stretched in another way.
  @discardableResult
  public func changeSlot(
    _ id: Int, to key: KeySource, label: String? = nil, stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    let known = try slots().first { $0.id == id }
    guard let known, let slotID = UInt8(exactly: id) else { throw CofferError.slotNotFound(id: id) }
    let secret = try prepare(key, label ?? known.label, stretching, replacing: slotID)
    return SlotInfo(try changeEnvelope({ try $0.replaceSlot(slotID, with: secret) }) { _ in .slotReplaced(slotID) })
  }

  /// Changes a slot's label.
  ///
  /// - Throws: `CofferError.slotNotFound`; `.unsupported` when the label is longer than 64 bytes; as `Connection.readWrite`.
  public func setLabel(_ label: String, forSlot id: Int) throws {
    let slotID = try CofferError.translating { try Self.slotID(id) }
    try changeEnvelope({ try $0.setLabel(label, ofSlot: slotID) }) { .slotLabelled(slotID) }
  }

  /// Removes a slot, so that its secret no longer opens the store; nothing of it stays in the file.
  ///
  /// If the disk fails after the first of the two copies of the store's header was written, the slot is removed, and the
  /// second copy still has it until the next change of the store; the logger gets a warning.
  ///
  /// Someone with its secret and a copy of the file can still read that copy, and what is written later under the same root
  /// key; `rotate(newRootKeyFor:droppingSlots:progress:)` ends that.
  ///
  /// - Throws: `CofferError.slotNotFound`; `.lastSlot`; as `Connection.readWrite`.
  public func removeSlot(_ id: Int) throws {
    let slotID = try CofferError.translating { try Self.slotID(id) }
    try changeEnvelope({ try $0.removeSlot(slotID) }) { .slotRemoved(slotID) }
  }

  /// The number of the slot that has opened the store.
  package func openedSlot() throws -> Int { Int(try storeOnDisk().openedSlot) }

  // MARK: -

  static func slotID(_ id: Int) throws -> UInt8 {
    guard let slotID = UInt8(exactly: id) else { throw StorageError.slotNotFound(id: id) }
    return slotID
  }

  private func prepare(
    _ key: KeySource, _ label: String, _ stretching: PasswordHash, replacing id: UInt8? = nil
  ) throws -> PreparedSecret {
    let store = try storeOnDisk()
    return try CofferError.translating {
      try store.refresh()
      return try PreparedSecret(
        key, stretching: .password(stretching), label: label, owner: store.storeID, comparedWith: store.envelope.slots,
        replacing: id)
    }
  }

  /// The slot that `key` opens; nil if it opens none.
  package func slot(openedBy key: KeySource) throws -> SlotInfo? {
    let store = try storeOnDisk()
    return try CofferError.translating {
      try store.refresh()
      return try store.envelope.slots.slot(openedBy: key, owner: store.storeID).map(SlotInfo.init)
    }
  }

  private func changeEnvelope<Result>(
    _ change: (inout EnvelopeChange) throws -> Result, _ action: (Result) -> CommitAction
  ) throws -> Result {
    _ = try storeOnDisk()
    return try makeConnection().perform { try $0.changeEnvelope(change, action) }
  }
}

extension Session {
  /// Changes the envelope, in a transaction that records it, so that an older envelope put back is rejected.
  ///
  /// - Parameter action: What the log says about it.
  func changeEnvelope<Result>(
    _ change: (inout EnvelopeChange) throws -> Result, _ action: (Result) -> CommitAction
  ) throws -> Result {
    try recordingEnvelope { record in
      let (result, sequence) = try connection.changeEnvelope(change)
      try record(result, sequence, action(result))
      return result
    }
  }

  /// Runs `body` in a transaction, and makes sure that its result is true: an envelope that was written is in force,
  /// whether or not the commit that records it succeeds.
  ///
  /// - Parameter body: Calls its argument with the result as soon as a new envelope is written.
  func recordingEnvelope<Result>(
    _ body: (_ record: (Result, _ sequence: UInt64, CommitAction) throws -> Void) throws -> Result
  ) throws -> Result {
    let path = connection.store?.path ?? ""
    var written: (result: Result, action: CommitAction)?
    do {
      return try write(.full) {
        try CofferError.translating {
          try body { result, sequence, action in
            written = (result, action)
            note(action)
            try noteEnvelope(sequence)
            if connection.store?.hasUnwrittenEnvelopeCopy ?? false {
              core.options.logger.warning(
                """
                \(path): only one of the two copies of the header could be written. What it says is in force; the other \
                copy is from before until the next change of the store.
                """)
            }
          }
        }
      }
    } catch {
      guard let written else { throw error }
      let failure = (error as? CofferError)?.failure ?? "\(error)"
      core.options.logger.warning(
        "\(path): \(written.action) is in force, and gets into the log only if this program commits again. \(failure)")
      core.unrecordedActions.withLock { $0.append(written.action) }
      core.hasUnrecordedEnvelope.store(true, ordering: .relaxed)
      return written.result
    }
  }

  /// Records the number of the newest envelope.
  func noteEnvelope(_ sequence: UInt64) throws {
    try Metadata(connection: connection).setEnvelopeSequence(sequence)
    transaction.changesDeclarations = true
  }

  /// Records an envelope that no commit has recorded so far.
  func noteUnrecordedEnvelope() throws {
    guard core.hasUnrecordedEnvelope.load(ordering: .relaxed), let store = connection.store else { return }
    try noteEnvelope(store.envelopeSequence)
    core.unrecordedActions.withLock { $0 }.forEach(note)
  }

  /// Called after a commit.
  func didRecordEnvelope() {
    guard core.hasUnrecordedEnvelope.exchange(false, ordering: .relaxed) else { return }
    core.unrecordedActions.withLock { $0 = [] }
  }
}
