import Coffer
import Dispatch
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The vault of a store that a command keeps open: unlocked with a named key until the command ends, or else for as long as
/// `prefs unlock` keeps its key; with a limit, only while it is used.
///
/// A ``VaultFollower`` has it checked in time.
package final class KeptVault: Sendable {
  private struct State {
    /// Where `prefs unlock` keeps the key of the store.
    var place: UnlockState?
    /// Nil while the vault is locked, or unlocked with a named key.
    var opening: Opening?
    /// When it was last unlocked, or used.
    var lastUse = ContinuousClock.now
  }

  private struct Opening {
    /// Whether it lasts only as long as `prefs unlock` keeps the key.
    let isOfKeptKey: Bool
    /// The last `prefs lock` at that time.
    let lockMark: LockMark
  }

  private let database: Database
  private let vault: Vault
  private let session: CommandSession
  private let idleLimit: Duration?
  /// Held while the vault is locked or unlocked here: a key that is being wiped must not unlock it again.
  private let state = Mutex(State())

  /// - Parameter idleLimit: How long it stays unlocked without use; nil for no limit.
  package init(_ database: Database, _ session: CommandSession, idleLimit: Duration? = nil) {
    (self.database, vault, self.session, self.idleLimit) = (database, database.vault, session, idleLimit)
  }

  // MARK: - Unlocking and locking

  /// Unlocks the vault, if there is one, with a named or kept key; without either it stays locked.
  ///
  /// - Throws: ``Failure`` if a named key does not open it; `CofferError`.
  package func unlockIfAtHand() throws {
    try state.withLock { state in
      guard let key = try VaultAccess(vault: vault, session: session).unlockIfAtHand() else { return }
      state.lastUse = .now
      if key == .keptKey { try noteKeptKey(&state) }
    }
  }

  /// The key of the vault, from its passphrase.
  package struct PassphraseOpening {
    fileprivate let key: Vault.Opening
    /// The last `prefs lock` when the passphrase was given.
    fileprivate let lockMark: LockMark
  }

  /// Stretches a passphrase, which takes a while; nothing else has to wait for that.
  ///
  /// - Throws: ``Failure`` when `prefs lock` could not reach this process; `CofferError`.
  package func opening(_ passphrase: SecretBytes) throws -> PassphraseOpening {
    let mark = try state.withLock { state in
      state.lastUse = .now
      return try kept(&state).watchLocks()
    }
    return PassphraseOpening(key: try vault.opening(with: .passphrase(passphrase)), lockMark: mark)
  }

  /// Unlocks the vault, until it is locked here or by `prefs lock`.
  ///
  /// - Throws: `CofferError.vaultLocked` if it was locked since the passphrase was given.
  package func unlock(_ opening: PassphraseOpening) throws {
    try state.withLock { state in
      guard try !kept(&state).lockMark.isLater(than: opening.lockMark) else {
        throw CofferError.vaultLocked(collection: nil)
      }
      try vault.unlock(opening.key)
      state.lastUse = .now
      state.opening = Opening(isOfKeptKey: false, lockMark: opening.lockMark)
    }
  }

  /// Locks the vault here, and in other programs, as `prefs lock` does.
  package func lock() throws {
    try state.withLock { try lock(&$0) }
  }

  private func lock(_ state: inout State) throws {
    close(&state)
    try kept(&state).lock()
  }

  private func close(_ state: inout State) {
    state.opening = nil
    vault.lock()
  }

  /// Unlocks or locks the vault, if `prefs unlock` or `prefs lock` was run or its time is over.
  ///
  /// To be called also before a secret is read, for keys that are wiped without a notice.
  package func check() { state.withLock { check(&$0) } }

  /// Begins the time without use again: a secret was read or set.
  package func noteUse() { state.withLock { $0.lastUse = .now } }

  private func check(_ state: inout State) {
    guard vault.isUnlocked else {
      guard let key = try? kept(&state).key(), (try? vault.unlock(vaultKey: key)) != nil else { return }
      state.lastUse = .now
      try? noteKeptKey(&state)
      return
    }
    if let idleLimit, state.lastUse + idleLimit <= .now {
      do { try lock(&state) } catch { report("the vault is locked, but `prefs unlock` still keeps its key: \(error)") }
      return
    }
    guard let opening = state.opening, let kept = try? kept(&state) else { return }
    if opening.isOfKeptKey && kept.end() == nil || kept.lockMark.isLater(than: opening.lockMark) { close(&state) }
  }

  // MARK: - For its follower

  var events: AsyncStream<VaultEvent> { vault.events }

  /// Calls `handler` when another store may have taken the place of the one whose marks are watched.
  func onReplacement(_ handler: @escaping @Sendable () -> Void) throws -> CommitRegistration {
    try database.onCommit { if $0.scope == .everything { handler() } }
  }

  /// Locks it, so that the next kept key is tried: it has a new key that this process cannot read.
  func lockForNewKey() { state.withLock { close(&$0) } }

  /// How long until it may lock by itself; nil if it does not.
  var timeLeft: Duration? {
    state.withLock { state in
      guard vault.isUnlocked else { return nil }
      let end = state.opening?.isOfKeptKey == true ? state.place?.end() : nil
      let kept = end.map { Duration.seconds($0.timeIntervalSinceNow) }
      let idle = idleLimit.map { state.lastUse + $0 - .now }
      // A `prefs lock` of another session is not noticed otherwise.
      let look = state.opening.map { _ in Duration.seconds(60) }
      return [kept, idle, look].compactMap(\.self).min().map { max(.zero, $0) }
    }
  }

  /// Calls `handler` when `prefs lock` or `prefs unlock` was run, or the marks that they replace are gone.
  func watchMarks(_ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws -> FileWatcher {
    try state.withLock { try kept(&$0) }.watchMarks(queue, handler)
  }

  var hasMarks: Bool { state.withLock { (try? kept(&$0).hasMarks) ?? false } }

  /// The store that the marks are of.
  var storeID: String? { vault.storeID }

  func report(_ problem: String) { session.options.note(problem) }

  // MARK: - State

  private func kept(_ state: inout State) throws -> UnlockState {
    // Another store may have taken the place of the one that was opened.
    let id = try vault.storeID ?? Database.storeID(at: session.path)
    if let known = state.place, known.storeID == id { return known }
    let kept = UnlockState(storeID: id, options: session.options)
    state.place = kept
    return kept
  }

  private func noteKeptKey(_ state: inout State) throws {
    let kept = try kept(&state)
    state.opening = Opening(isOfKeptKey: true, lockMark: (try? kept.watchLocks()) ?? kept.lockMark)
  }
}
