import CofferCrypto
import CofferStorage
import Dispatch

/// Remembers the newest state of a store that is on disk, outside of the store, and recognizes an older one.
///
/// It never runs ahead of the disk, which would be a false alarm after a power failure: only synced states are kept.
final class StoreWitness: Sendable {
  private let anchor: any FreshnessAnchor
  private let currentPath: Lock<String>
  private var path: String { currentPath.withLock { $0 } }
  /// The vault's keys of this database: the record remembers the one last used.
  private let vault: VaultKeys
  private let state = Lock(State())
  /// Held while the record is compared and replaced: otherwise an earlier one could be kept after a later one.
  private let keeping = Lock<Void>(())
  /// Receives why a record could not be kept, once.
  private let report: @Sendable (String) -> Void

  private struct State {
    /// Whether it is known that no record can be kept.
    var isReported = false

    /// The last commit of this database, synced or not.
    var committed: Witness?
    /// A state that is on disk and has not been kept yet.
    var pending: Witness?
    /// Whether that will be kept once the interval is over.
    var isAwaited = false
    var lastKept: ContinuousClock.Instant?

    /// The record that was last found to be of the store as it is open.
    var vouched: [UInt8]?
    /// What that says.
    var known: Witness?
    /// When it was last looked at.
    var lastCompared: ContinuousClock.Instant?
  }

  /// - Parameter report: Receives why a record could not be kept, as a sentence, once.
  init(
    anchor: any FreshnessAnchor, path: String, vault: VaultKeys, report: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.anchor = anchor
    self.report = report
    currentPath = Lock(path)
    self.vault = vault
  }

  // MARK: Opening

  /// The last record; read it before the snapshot to compare it with, since others may commit meanwhile.
  func record() -> [UInt8]? { anchor.record(ofStoreAt: path) }

  /// Why the record cannot be used, as a sentence; nil if nothing is wrong with it, or there is none.
  ///
  /// - Parameter record: The record, if there is one.
  func problem(_ record: [UInt8]?, _ store: Store) -> String? {
    if let problem = fileAnchor?.problem(ofStoreAt: path) {
      state.withLock { $0.isReported = true }
      return problem
    }
    guard let record, case .unreadable? = try? store.read(witness: record) else { return nil }
    return "The record of the newest state cannot be read: an older copy of the store would not be noticed. The next "
      + "commit makes a new one."
  }

  /// Whether something is in the place of the record.
  var hasFile: Bool { fileAnchor?.hasFile(ofStoreAt: path) ?? false }

  /// Makes way for a new record.
  ///
  /// - Returns: Whether the next commit can make one.
  func removeObstacle() -> Bool { fileAnchor?.removeObstacle(ofStoreAt: path) ?? false }

  /// Others report their own problems.
  private var fileAnchor: FileAnchor? { anchor as? FileAnchor }

  /// Compares a record with a snapshot of the store.
  ///
  /// A record under the former root key is one from before the replacement: the store keeps the key that reads it. One under
  /// any other root key says that the store was under a later one, or that more than one replacement was missed. One of another
  /// store says that this one was put in its place: creating and restoring a store change the record themselves.
  ///
  /// Modelled in `Documentation/Models/StoreRestore.pml`.
  ///
  /// - Throws: `CofferError.rolledBack`, `.anotherStore`; `StorageError.replaced` if the file was replaced meanwhile, and the
  ///   record may be that of the new one.
  func check(_ record: [UInt8], _ store: Store, _ log: ChangeLog) throws {
    var reading = try store.read(witness: record)
    if case .otherRootKey = reading {
      // Another process may have replaced the root key since it was read.
      try store.refresh()
      reading = try store.read(witness: record)
    }
    switch reading {
    case .whole(let witness, _):
      if try !log.has(witness.commit, witness.link) || self.isOlder(store, than: witness.envelope) {
        throw rolledBack(known: witness.commit, witness.envelope, found: try log.lastNumber(), store)
      }
      note(record, witness)
    case .otherRootKey(let envelope):
      // The sequence decides nothing: who put the store under this key has chosen it.
      throw rolledBack(known: nil, envelope, found: try log.lastNumber(), store)
    case .otherStore:
      if store.isReplaced { throw StorageError.replaced(path: store.path) }
      throw CofferError.anotherStore(path: store.path)
    case .unreadable: break
    }
  }

  // MARK: While the store is open

  /// Compares the record with the store that `connection` is about to change, before anything is written.
  ///
  /// A program that was idle may have missed a new root key, or several changes of the slots, and someone whom those locked out may
  /// have put back what this program knows. Its keys cannot tell, and the record can. Nor must a commit follow on other commits than
  /// those that the record knows: it would vouch for them. Only the holder of the write lock calls this, so nothing is being changed.
  ///
  /// It costs nothing while no one else commits, except once per ``FreshnessAnchor/interval``, since what shows the commits of
  /// others is not authenticated.
  ///
  /// Modelled in `Documentation/Models/RootKey.pml`.
  ///
  /// - Throws: `CofferError.rolledBack`.
  func compare(_ connection: SQLiteConnection, _ log: ChangeLog) throws {
    guard let store = connection.store else { return }
    let (version, now) = (connection.dataVersion, ContinuousClock.now)
    let isDue = state.withLock { state in
      version == nil || version != connection.comparedVersion
        || state.lastCompared.map { now - $0 >= anchor.interval } ?? true
    }
    guard isDue else { return }
    if let record = changedRecord() {
      switch try store.read(witness: record) {
      case .whole(let known, _):
        let found = store.envelopeSequence
        guard known.envelope <= found else {
          throw CofferError.rolledBack(
            known: StoreAge(commit: known.commit, envelope: known.envelope),
            found: StoreAge(commit: nil, envelope: found))
        }
        note(record, known)
      case .otherRootKey(let known):
        throw CofferError.rolledBack(
          known: StoreAge(commit: nil, envelope: known), found: StoreAge(commit: nil, envelope: store.envelopeSequence))
      // A store that is about to be created has its record before it has the name.
      case .otherStore, .unreadable: break
      }
    }
    if let known = state.withLock({ $0.known }), try !log.has(known.commit, known.link) {
      throw rolledBack(known: known.commit, known.envelope, found: try log.lastNumber(), store)
    }
    state.withLock { $0.lastCompared = now }
    connection.comparedVersion = version
  }

  private func note(_ record: [UInt8], _ witness: Witness) {
    state.withLock { ($0.vouched, $0.known, $0.lastCompared) = (record, witness, .now) }
  }

  private func isVouched(_ record: [UInt8]) -> Bool { state.withLock { $0.vouched == record } }

  /// What a record vouches for in the change log.
  enum Vouched {
    /// Nothing: it is none of this store.
    case nothing
    /// The log up to this commit.
    case log(upTo: Int64)
    /// Nothing any more: the log begins after this commit, the recorded one.
    case passed(Int64)
    /// Another log than this one, up to this commit.
    case otherLog(Int64)
  }

  /// What the record vouches for, as of the current transaction.
  ///
  /// - Parameter record: Read before the transaction.
  static func verify(_ record: [UInt8], _ store: Store, _ log: ChangeLog) throws -> Vouched {
    guard case .whole(let witness, _) = try store.read(witness: record) else { return .nothing }
    guard try log.has(witness.commit, witness.link) else { return .otherLog(witness.commit) }
    return try log.link(of: witness.commit) == nil ? .passed(witness.commit) : .log(upTo: witness.commit)
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

  /// Forgets the state of this database, whose store was replaced by the one at `path`.
  func storeWasReplaced(by path: String) {
    currentPath.withLock { $0 = path }
    state.withLock { $0 = State() }
  }

  // MARK: Commits

  /// Called after a commit.
  ///
  /// - Parameter isSynced: Whether it and all earlier commits are on disk.
  func didCommit(_ witness: Witness, isSynced: Bool, _ store: Store) {
    let due = state.withLock { state -> Witness? in
      state.committed = witness
      return isSynced ? takeDue(witness, &state, store) : nil
    }
    if let due { keep(due, store) }
  }

  /// Called when everything committed is on disk.
  func didSync(_ store: Store) {
    let due = state.withLock { state in state.committed.flatMap { takeDue($0, &state, store) } }
    if let due { keep(due, store) }
  }

  /// Keeps the last state, if ``FreshnessAnchor/interval`` has delayed that.
  ///
  /// - Parameter isSynced: Whether everything that this database has committed is on disk.
  func close(isSynced: Bool, _ store: Store) {
    let last = state.withLock { state in
      defer { (state.committed, state.pending, state.lastKept) = (nil, nil, nil) }
      return isSynced ? state.committed : state.pending
    }
    if let last { keep(last, store) }
  }

  private func takeDue(_ witness: Witness, _ state: inout State, _ store: Store) -> Witness? {
    let now = ContinuousClock.now
    guard state.lastKept.map({ now - $0 >= anchor.interval }) ?? true else {
      state.pending = witness
      // There may be no later commit.
      if !state.isAwaited { awaitInterval(store) }
      state.isAwaited = true
      return nil
    }
    (state.pending, state.lastKept) = (nil, now)
    return witness
  }

  private func awaitInterval(_ store: Store) {
    let deadline = DispatchTime.now() + anchor.interval.dispatchInterval
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: deadline) { [weak self, weak store] in
      guard let self, let store else { return }
      // Then what is pending may be of the store that has replaced it.
      let isReplaced = store.isReplaced
      let last = state.withLock { state -> Witness? in
        state.isAwaited = false
        guard !isReplaced else { return nil }
        defer { (state.pending, state.lastKept) = (nil, .now) }
        return state.pending
      }
      if let last { keep(last, store) }
    }
  }

  private func keep(_ witness: Witness, _ store: Store) {
    update(store) { present in
      var new = witness
      new.vault = vault.memory
      guard let present else { return new }
      switch try store.read(witness: present) {
      case .whole(let kept, let isFormer):
        new.vault = vault.remembered(over: kept.vault)
        // The existing record, perhaps by another process, may be newer.
        if kept.commit >= new.commit, kept.envelope >= new.envelope {
          guard isFormer || !isSame(kept.vault, new.vault) else { return nil }
          (new.commit, new.envelope, new.link) = (kept.commit, kept.envelope, kept.link)
        }
      // This program has missed a new root key; or the record has, if it is still the one that was of the store before.
      case .otherRootKey: guard isVouched(present) else { return nil }
      // This store is being replaced by that one: it was opened with a record of its own, or none.
      case .otherStore: return nil
      case .unreadable: break
      }
      return new
    }
  }

  /// Replaces the record by what `change` makes of it; nil leaves it, and nothing is kept under this path for a store that was replaced.
  private func update(_ store: Store, _ change: ([UInt8]?) throws -> Witness?) {
    keeping.withLock { _ in replaceRecord(store, change) }
  }

  private func replaceRecord(_ store: Store, _ change: ([UInt8]?) throws -> Witness?) {
    var made: (record: [UInt8], witness: Witness)?
    func changed(_ present: [UInt8]?) -> [UInt8]? {
      guard !store.isReplaced, let new = try? change(present), let record = try? store.seal(new) else { return nil }
      made = (record, new)
      return record
    }
    if let fileAnchor {
      if let problem = fileAnchor.update(ofStoreAt: path, changed) {
        let isNews = state.withLock { state in
          defer { state.isReported = true }
          return !state.isReported
        }
        if isNews { report(problem) }
        return
      }
    } else if let new = changed(record()) {
      anchor.keep(new, ofStoreAt: path)
    }
    guard let made else { return }
    note(made.record, made.witness)
    vault.didRemember(made.witness.vault)
  }

  // MARK: The vault

  /// The vault's key that the record had when it was last found to be of the store as it is open.
  var vouchedVault: VaultMemory? { state.withLock { $0.known?.vault } }

  /// The vault's key that the record remembers.
  func rememberedVault(_ store: Store) -> VaultMemory? {
    guard let record = record(), case .whole(let kept, _)? = try? store.read(witness: record) else { return nil }
    return kept.vault
  }

  /// Adds the vault's key of this database to the record, if there is one; otherwise the next commit does.
  func rememberVault(_ store: Store) {
    var isKept = false
    update(store) { present in
      guard let present, case .whole(var kept, _) = try store.read(witness: present) else { return nil }
      let vault = vault.remembered(over: kept.vault)
      guard !isSame(vault, kept.vault) else { return nil }
      kept.vault = vault
      isKept = true
      return kept
    }
    if isKept { synchronize() }
  }

  private func isSame(_ one: VaultMemory?, _ other: VaultMemory?) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    return one.isSame(as: other)
  }

  // MARK: A new root key

  /// Whether the record was made under the former root key: a second replacement would make it unreadable.
  func isOfFormerRootKey(_ store: Store) -> Bool {
    guard let record = record() else { return false }
    return if case .whole(_, isFormer: true)? = try? store.read(witness: record) { true } else { false }
  }

  /// Keeps the last commit of this database, which is on disk, at once.
  func keepNow(_ store: Store) {
    let last = state.withLock { state in
      state.pending = nil
      return state.committed
    }
    if let last { keep(last, store) }
  }

  /// Makes the record survive a power failure.
  func synchronize() { (anchor as? any SynchronizedAnchor)?.synchronizeRecord(ofStoreAt: path) }
}

extension StoreWitness: EnvelopeWitness {
  func changedRecord() -> [UInt8]? { record().flatMap { isVouched($0) ? nil : $0 } }

  func noteVouched(_ record: [UInt8]) { state.withLock { $0.vouched = record } }
}
