import Coffer
import Dispatch
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The vault of a store that a command keeps open: unlocked with a named key until the command ends, or else for as long as
/// `prefs unlock` keeps its key.
///
/// A ``VaultFollower`` has it checked in time.
package final class KeptVault: Sendable {
  private struct State {
    /// Where `prefs unlock` keeps the key; read from the store's file once.
    var place: UnlockState?
    /// Nil while the vault is locked, or unlocked with a named key.
    var opening: Opening?
  }

  private struct Opening {
    /// The last `prefs lock` at that time.
    let lockMark: LockMark?
  }

  private let vault: Vault
  private let session: CommandSession
  /// Held while the vault is locked or unlocked here: a key that is being wiped must not unlock it again.
  private let state = Mutex(State())

  package init(_ database: Database, _ session: CommandSession) { (vault, self.session) = (database.vault, session) }

  // MARK: - Unlocking and locking

  /// Unlocks the vault, if there is one, with a named or kept key; without either it stays locked.
  ///
  /// - Throws: ``Failure`` if a named key does not open it; `CofferError`.
  package func unlockIfAtHand() throws {
    try state.withLock { state in
      guard try VaultAccess(vault: vault, session: session).unlockIfAtHand() == .keptKey else { return }
      note(try kept(&state), &state)
    }
  }

  /// Locks the vault here, and in other programs, as `prefs lock` does.
  package func lock() throws {
    try state.withLock { state in
      close(&state)
      try kept(&state).lock()
    }
  }

  private func close(_ state: inout State) {
    state.opening = nil
    vault.lock()
  }

  /// Unlocks or locks the vault, if `prefs unlock` or `prefs lock` was run or its time is over.
  ///
  /// To be called also before a secret is read, for keys that are wiped without a notice.
  package func check() {
    state.withLock { state in
      guard vault.isUnlocked else {
        guard let kept = try? kept(&state), let key = kept.key(), (try? vault.unlock(vaultKey: key)) != nil else {
          return
        }
        return note(kept, &state)
      }
      guard let opening = state.opening, let kept = state.place else { return }
      if kept.end() == nil || kept.lockMark != opening.lockMark { close(&state) }
    }
  }

  // MARK: - For its follower

  var events: AsyncStream<VaultEvent> { vault.events }

  /// Locks it, so that the next kept key is tried: it has a new key that this process cannot read.
  func lockForNewKey() { state.withLock { close(&$0) } }

  /// How long until it locks by itself; nil if it does not.
  var timeLeft: Duration? {
    state.withLock { state in
      guard state.opening != nil, let end = state.place?.end() else { return nil }
      return .seconds(max(0, end.timeIntervalSinceNow))
    }
  }

  /// Calls `handler` when `prefs lock` or `prefs unlock` was run, or the marks that they replace are gone.
  func watchMarks(_ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws -> FileWatcher {
    try state.withLock { try kept(&$0) }.watchMarks(queue, handler)
  }

  var hasMarks: Bool { state.withLock { $0.place?.hasMarks ?? false } }

  func report(_ problem: String) { session.options.note(problem) }

  // MARK: - State

  private func kept(_ state: inout State) throws -> UnlockState {
    if let known = state.place { return known }
    let kept = try VaultAccess(vault: vault, session: session).state()
    state.place = kept
    return kept
  }

  private func note(_ kept: UnlockState, _ state: inout State) {
    state.opening = Opening(lockMark: try? kept.watchLocks())
  }
}
