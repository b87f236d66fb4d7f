import CofferCrypto
import CofferStorage

/// Remembers the newest state of a store that is on disk, outside of the store, and recognizes an older one.
///
/// It never runs ahead of the disk, which would be a false alarm after a power failure: only synced states are kept.
final class StoreWitness: Sendable {
  private let anchor: any FreshnessAnchor
  private let path: String
  private let state = Lock(State())

  private struct State {
    /// The last commit of this database, synced or not.
    var committed: Witness?
    /// A state that is on disk and has not been kept yet.
    var pending: Witness?
    var lastKept: ContinuousClock.Instant?
  }

  init(anchor: any FreshnessAnchor, path: String) {
    self.anchor = anchor
    self.path = path
  }

  // MARK: Opening

  /// The last record; read it before the snapshot to compare it with, since others may commit meanwhile.
  func record() -> [UInt8]? { anchor.record(ofStoreAt: path) }

  /// Compares a record with a snapshot of the store.
  ///
  /// - Throws: `CofferError.rolledBack`.
  func check(_ record: [UInt8], _ store: Store, _ log: ChangeLog) throws {
    switch try store.read(witness: record) {
    case .whole(let witness):
      if try !log.has(witness.commit, witness.link) || self.isOlder(store, than: witness.envelope) {
        throw rolledBack(known: witness.commit, witness.envelope, found: try log.lastSequence(), store)
      }
    case .otherRootKey(let envelope):
      // If the envelope is older, so is the store's current key.
      if try isOlder(store, than: envelope) {
        throw rolledBack(known: nil, envelope, found: try log.lastSequence(), store)
      }
    case .otherStore, .unreadable: break
    }
  }

  /// Up to which commit the record vouches for the log, as of the current transaction; nil without one of this store.
  ///
  /// - Parameter record: Read before the transaction.
  /// - Returns: A sentence if the log differs.
  static func verify(_ record: [UInt8], _ store: Store, _ log: ChangeLog) throws -> (commit: Int64?, problem: String?) {
    guard case .whole(let witness) = try store.read(witness: record) else { return (nil, nil) }
    guard try !log.has(witness.commit, witness.link) else { return (witness.commit, nil) }
    return (
      nil, "The change log does not have commit \(witness.commit) as the record outside of the store remembers it."
    )
  }

  private func isOlder(_ store: Store, than envelope: UInt64) throws -> Bool {
    // It may have changed since it was read.
    if store.envelopeSequence < envelope { try store.refresh() }
    return store.envelopeSequence < envelope
  }

  private func rolledBack(known commit: Int64?, _ envelope: UInt64, found: Int64, _ store: Store) -> CofferError {
    .rolledBack(
      known: StoreAge(commit: commit, envelope: envelope),
      found: StoreAge(commit: found, envelope: store.envelopeSequence))
  }

  /// Removes the record, for instance when an older store is put in place on purpose.
  func forget() {
    state.withLock { $0 = State() }
    anchor.keep(nil, ofStoreAt: path)
  }

  /// Forgets the state of this database, whose store was replaced by another.
  func storeWasReplaced() {
    state.withLock { $0 = State() }
  }

  // MARK: Commits

  /// Called after a commit.
  ///
  /// - Parameter isSynced: Whether it and all earlier commits are on disk.
  func didCommit(_ witness: Witness, isSynced: Bool, _ store: Store) {
    let due = state.withLock { state -> Witness? in
      state.committed = witness
      return isSynced ? takeDue(witness, &state) : nil
    }
    if let due { keep(due, store) }
  }

  /// Called when everything committed is on disk.
  func didSync(_ store: Store) {
    let due = state.withLock { state in state.committed.flatMap { takeDue($0, &state) } }
    if let due { keep(due, store) }
  }

  /// Keeps the last state, if ``FreshnessAnchor/interval`` has delayed that.
  ///
  /// - Parameter isSynced: Whether everything that this database has committed is on disk.
  func close(isSynced: Bool, _ store: Store) {
    let last = state.withLock { state in
      defer { state = State() }
      return isSynced ? state.committed : state.pending
    }
    if let last { keep(last, store) }
  }

  private func takeDue(_ witness: Witness, _ state: inout State) -> Witness? {
    let now = ContinuousClock.now
    guard state.lastKept.map({ now - $0 >= anchor.interval }) ?? true else {
      state.pending = witness
      return nil
    }
    (state.pending, state.lastKept) = (nil, now)
    return witness
  }

  private func keep(_ witness: Witness, _ store: Store) {
    // Keep nothing under this path for a store that was replaced.
    guard !store.isReplaced, !isKept(witness, store), let record = try? store.seal(witness) else { return }
    anchor.keep(record, ofStoreAt: path)
  }

  /// Whether the existing record, perhaps by another process, is at least as new.
  private func isKept(_ witness: Witness, _ store: Store) -> Bool {
    guard let record = record(), let kept = try? store.read(witness: record) else { return false }
    return switch kept {
    case .whole(let kept): kept.commit >= witness.commit && kept.envelope >= witness.envelope
    case .otherRootKey(let envelope): envelope > witness.envelope
    case .otherStore, .unreadable: false
    }
  }
}
