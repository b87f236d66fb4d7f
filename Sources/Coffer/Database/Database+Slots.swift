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
  /// - Throws: `CofferError.slotsFull` when there are 16; `.unsupported` when the label is too long, the cost is out of
  ///   bounds, or the store is in memory; `.keyUnavailable`, and as `Connection.readWrite`.
  @discardableResult
  public func addSlot(
    _ key: KeySource, label: String = "", stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    let secret = try prepare(key, label, stretching)
    return SlotInfo(try changeEnvelope { try $0.addSlot(secret) })
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
  /// - Throws: `CofferError.slotNotFound`; as `addSlot(_:label:stretching:)`.
  @discardableResult
  public func changeSlot(
    _ id: Int, to key: KeySource, label: String? = nil, stretching: PasswordHash = .standard
  ) throws -> SlotInfo {
    let known = try slots().first { $0.id == id }
    guard let known, let slotID = UInt8(exactly: id) else { throw CofferError.slotNotFound(id: id) }
    let secret = try prepare(key, label ?? known.label, stretching)
    return SlotInfo(try changeEnvelope { try $0.replaceSlot(slotID, with: secret) })
  }

  /// Changes a slot's label.
  ///
  /// - Throws: `CofferError.slotNotFound`; `.unsupported` when the label is longer than 64 bytes; as `Connection.readWrite`.
  public func setLabel(_ label: String, forSlot id: Int) throws {
    try changeEnvelope { try $0.setLabel(label, ofSlot: Self.slotID(id)) }
  }

  /// Removes a slot, so that its secret no longer opens the store; nothing of it stays in the file.
  ///
  /// Someone with its secret and a copy of the file can still read that copy, and what is written later under the same root
  /// key; `rotate(newRootKeyFor:droppingSlots:progress:)` ends that.
  ///
  /// - Throws: `CofferError.slotNotFound`; `.lastSlot`; as `Connection.readWrite`.
  public func removeSlot(_ id: Int) throws {
    try changeEnvelope { try $0.removeSlot(Self.slotID(id)) }
  }

  // MARK: -

  static func slotID(_ id: Int) throws -> UInt8 {
    guard let slotID = UInt8(exactly: id) else { throw StorageError.slotNotFound(id: id) }
    return slotID
  }

  private func prepare(_ key: KeySource, _ label: String, _ stretching: PasswordHash) throws -> PreparedSecret {
    let store = try storeOnDisk()
    return try CofferError.translating {
      try PreparedSecret(key, stretching: .password(stretching), label: label, owner: store.storeID)
    }
  }

  private func changeEnvelope<Result>(_ change: (inout EnvelopeChange) throws -> Result) throws -> Result {
    _ = try storeOnDisk()
    return try makeConnection().perform { try $0.changeEnvelope(change) }
  }
}

extension Session {
  /// Changes the envelope, in a transaction that records it, so that an older envelope put back is rejected.
  func changeEnvelope<Result>(_ change: (inout EnvelopeChange) throws -> Result) throws -> Result {
    try write(.full) {
      try CofferError.translating {
        let (result, sequence) = try connection.changeEnvelope(change)
        try noteEnvelope(sequence)
        return result
      }
    }
  }

  /// Records the number of the newest envelope.
  func noteEnvelope(_ sequence: UInt64) throws {
    try Metadata(connection: connection).setEnvelopeSequence(sequence)
    transaction.changesDeclarations = true
  }
}
