import CofferStorage

extension Database {
  /// Re-encrypts the whole store under a new key, while it is in use.
  ///
  /// ```swift
  /// try database.rotate { print("\(Int($0 * 100)) %") }
  /// ```
  ///
  /// Everything is rewritten in one transaction. Readers continue; the writers of all processes wait, about a second per 30
  /// MB. The log takes as much space as the store until it is checkpointed. Every process encrypts with the new key from its
  /// next write on; the old key is dropped when nothing needs it any more. If it is interrupted at any point, the store
  /// opens as before, and the next process that writes to it resumes the rotation.
  ///
  /// The root key and the slots stay; to replace them, use `rotate(newRootKeyFor:droppingSlots:progress:)`.
  ///
  /// - Parameter progress: Called with the fraction done, from 0 to 1.
  /// - Throws: `CofferError.oldKeyInUse` when an old snapshot is being read for longer than the busy timeout; `.damaged` when
  ///   a page does not authenticate, and `.diskFull` when there is no room for the log, with nothing changed; `.unfinished`
  ///   when re-encrypting fails after the new key is in force; `.unsupported` for a store in memory; as
  ///   `Connection.readWrite`.
  public func rotate(progress: (Double) -> Void = { _ in }) throws {
    try rotate(nil, progress: progress)
  }

  /// Re-encrypts the whole store under new keys, including a new root key.
  ///
  /// Anyone who had a dropped slot, or a copy of the old root key, can read nothing that is written from now on. The
  /// remaining slots open with the same secrets as before, all of which have to be given.
  ///
  /// ```swift
  /// try database.rotate(newRootKeyFor: [.keyFile(keyPath), .passphrase(passphrase)], droppingSlots: [2])
  /// ```
  ///
  /// - Parameters:
  ///   - keys: The secrets of the slots that stay.
  ///   - dropped: The slots to remove.
  ///   - progress: Called with the fraction done, from 0 to 1.
  /// - Throws: `CofferError.slotsNotOpened` when a slot is neither opened by one of `keys` nor dropped, and `.wrongKey` when
  ///   a key opens no slot; nothing is changed then. `.slotNotFound`, `.lastSlot`, `.keyUnavailable`; as
  ///   `rotate(progress:)`.
  public func rotate(
    newRootKeyFor keys: [KeySource], droppingSlots dropped: Set<Int> = [], progress: (Double) -> Void = { _ in }
  ) throws {
    try rotate(newRootKeyFor: keys, droppingSlots: dropped, checking: { _ in }, progress: progress)
  }

  /// The same, if the slots that are there then pass a check; see `SlotHolder.changeSlot(_:to:label:stretching:checking:)`.
  package func rotate(
    newRootKeyFor keys: [KeySource], droppingSlots dropped: Set<Int>, checking check: ([SlotInfo]) throws -> Void,
    progress: (Double) -> Void
  ) throws {
    let store = try storeOnDisk()
    let replacement = try CofferError.translating {
      try store.refresh()
      return try RootKeyReplacement(store, for: keys, dropping: Set(dropped.map(SlotAccess.number)))
    }
    try rotate(replacement, checking: check, progress: progress)
  }

  /// Checks whether `rotate(newRootKeyFor:droppingSlots:progress:)` has the secrets that it needs; changes nothing.
  package func checkRotation(newRootKeyFor keys: [KeySource], droppingSlots dropped: Set<Int>) throws {
    let store = try storeOnDisk()
    try CofferError.translating {
      try store.refresh()
      _ = try RootKeyReplacement(store, for: keys, dropping: Set(dropped.map(SlotAccess.number)))
    }
  }

  private func rotate(
    _ replacement: RootKeyReplacement?, checking check: ([SlotInfo]) throws -> Void = { _ in },
    progress: (Double) -> Void
  ) throws {
    _ = try storeOnDisk()
    try checkRewritable()
    try makeConnection().perform { try $0.rotate(replacement, checking: check, progress) }
  }

  /// Resumes an interrupted rotation, on a connection of its own, unless another process is doing so.
  ///
  /// Called after commits; `close()` waits for it. It does not wait long for others; a later commit tries again.
  func resumeRotation() {
    guard startResumption() else { return }
    resumption.enter()
    resumptionQueue.async { [self] in
      defer { resumption.leave() }
      do {
        let connection = try makeConnection()
        try connection.perform { try $0.resumeRotation() }
      } catch {
        options.logger.debug("\(path): the rotation of its keys is not finished yet. \(error)")
      }
    }
  }
}

extension Session {
  /// How long a resumed rotation waits for others.
  private static let resumptionTimeout = Duration.milliseconds(250)

  fileprivate func rotate(
    _ replacement: RootKeyReplacement?, checking check: ([SlotInfo]) throws -> Void, _ progress: (Double) -> Void
  ) throws {
    try requireWritable()
    let deadline = ContinuousClock.now + core.options.busyTimeout
    while true {
      if let lock = try CofferError.translating({ try RotationLock(connection) }) {
        // A new root key needs a new epoch, and interrupted rotations may have left no room for one.
        if replacement != nil, try !CofferError.translating({ try connection.hasRoomForEpoch }) {
          try finishRotation(rewritesFirst: true, timeout: core.options.busyTimeout) { _ in }
        }
        if replacement != nil { try settleWitness() }
        try changeEnvelope({ change in
          try check(change.slots.map(SlotInfo.init))
          if let replacement { try change.replaceRootKey(replacement) } else { try change.beginRotation() }
        }) { replacement == nil ? .rotationBegun : .rootKeyReplaced }
        do {
          try finishRotation(rewritesFirst: true, timeout: core.options.busyTimeout, progress)
        } catch let error as CofferError {
          throw Self.unfinished(replacement, error)
        }
        return withExtendedLifetime(lock) {}
      }
      guard ContinuousClock.now < deadline else { throw CofferError.busy }
      usleep(20_000)
    }
  }

  /// The error of a rotation whose new keys are in force, and with which not everything is rewritten.
  private static func unfinished(_ replacement: RootKeyReplacement?, _ error: CofferError) -> CofferError {
    // It says that itself.
    if error == .oldKeyInUse { return error }
    let dropped = (replacement?.dropped ?? []).sorted().map { "slot \($0)" }.joined(separator: ", ")
    let keys =
      replacement == nil
      ? "A new key is in force"
      : "A new root key is in force" + (dropped.isEmpty ? "" : ", and no longer opens with \(dropped)")
    return .unfinished(
      done: "\(keys): what is written from now on is under it, and what was written before is not re-encrypted yet.",
      next: "Rotate once more to finish it; the next program that writes tries that, too.", cause: error)
  }

  /// Makes sure that the record of this store is under the present root key, on disk, before that is replaced.
  ///
  /// A rotation that was interrupted between its envelope and its record has left one under the former root key, and a store
  /// recognizes records of its last two root keys only.
  private func settleWitness() throws {
    guard let witness = core.witness, let store = connection.store else { return }
    if witness.isOfFormerRootKey(store) {
      try write(.full) { try CofferError.translating { try noteEnvelope(store.envelopeSequence) } }
      witness.keepNow(store)
    }
    witness.synchronize()
  }

  fileprivate func resumeRotation() throws {
    guard let lock = try CofferError.translating({ try RotationLock(connection) }) else { return }
    connection.setBusyTimeout(Self.resumptionTimeout)
    try finishRotation(rewritesFirst: false, timeout: Self.resumptionTimeout) { _ in }
    withExtendedLifetime(lock) {}
  }

  /// Rewrites everything that is encrypted under an old key, then drops that key.
  ///
  /// - Parameters:
  ///   - rewritesFirst: Whether to rewrite everything without checking whether that is needed.
  ///   - timeout: How long to wait for others.
  private func finishRotation(
    rewritesFirst: Bool, timeout: Duration, _ progress: (Double) -> Void
  ) throws {
    try withoutActuallyEscaping(progress) { progress in
      let onPage = try pageCounter(progress)
      var rewrites = rewritesFirst
      var deadline = ContinuousClock.now + timeout
      while true {
        if rewrites {
          try vacuum(onPage: onPage)
          deadline = ContinuousClock.now + timeout
        }
        rewrites = false
        if try CofferError.translating({ try connection.checkpointAndTruncate(onPage: onPage) }) {
          switch try dropOldEpochs() {
          case nil, .dropped: return progress(1)
          // A checkpoint of another process, not yet aware of the new key, used the old one.
          case .neededByPages: rewrites = true
          case .neededByLog: break
          }
        }
        guard rewrites || ContinuousClock.now < deadline else { throw CofferError.oldKeyInUse }
        usleep(5000)
      }
    }
  }

  /// Counts pages that pass through the cipher, and reports the progress of a rotation from them.
  private func pageCounter(_ progress: @escaping (Double) -> Void) throws -> () -> Void {
    let pageCount = try CofferError.translating {
      try connection.statement("PRAGMA page_count").first { Int($0.integer(0)) } ?? 0
    }
    // Vacuum reads each page twice and writes it into the log; the checkpoint moves it from there into the file.
    let total = pageCount * 5
    let step = max(1, total / 100)
    var count = 0
    return {
      count += 1
      if count % step == 0 { progress(min(0.99, Double(count) / Double(total))) }
    }
  }

  /// - Returns: nil if there are no old epochs.
  private func dropOldEpochs() throws -> SQLiteConnection.EpochDrop? {
    try recordingEnvelope { record in
      guard connection.hasOldEpochs else { return nil }
      let result = try connection.dropOldEpochs()
      if case .dropped(let sequence) = result { try record(result, sequence, .rotated) }
      return result
    }
  }
}
