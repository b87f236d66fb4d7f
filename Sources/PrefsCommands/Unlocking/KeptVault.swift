import Coffer
import Synchronization

/// The vault of a store that a command keeps open: unlocked with a named key until the command ends, or else for as long as
/// `prefs unlock` keeps its key.
package final class KeptVault: Sendable {
  private struct Opening {
    /// Where the key is kept, and the last `prefs lock` at that time.
    let kept: UnlockState
    let lockMark: LockMark?
  }

  private let vault: Vault
  private let session: CommandSession
  private let place = Mutex<UnlockState?>(nil)
  /// Nil while the vault is locked, or unlocked with a named key.
  private let opening = Mutex<Opening?>(nil)

  package init(_ database: Database, _ session: CommandSession) { (vault, self.session) = (database.vault, session) }

  /// Unlocks the vault, if there is one, with a named or kept key; without either it stays locked.
  ///
  /// - Throws: ``Failure`` if a named key does not open it; `CofferError`.
  package func unlockIfAtHand() throws {
    guard try VaultAccess(vault: vault, session: session).unlockIfAtHand() == .keptKey else { return }
    note(try kept())
  }

  /// Locks the vault here, and in other programs, as `prefs lock` does.
  package func lock() throws {
    opening.withLock { $0 = nil }
    vault.lock()
    let kept = try kept()
    try kept.announceLock()
    try kept.forget()
  }

  /// Follows `prefs unlock` and `prefs lock`; to be called every moment.
  package func check() {
    guard vault.isUnlocked else {
      guard let kept = try? kept(), let key = kept.key(), (try? vault.unlock(vaultKey: key)) != nil else { return }
      return note(kept)
    }
    guard let present = opening.withLock({ $0 }) else { return }
    guard present.kept.end() == nil || present.kept.lockMark != present.lockMark else { return }
    opening.withLock { $0 = nil }
    vault.lock()
  }

  /// Locks the vault when another program has given it a new key that this one cannot read, so that the next kept key is tried.
  package func followNewKeys() async {
    for await event in vault.events where event == .keyReplaced(isFollowed: false) {
      opening.withLock { $0 = nil }
      vault.lock()
    }
  }

  /// Where the key is kept; read from the store's file once.
  private func kept() throws -> UnlockState {
    if let known = place.withLock({ $0 }) { return known }
    let kept = try VaultAccess(vault: vault, session: session).state()
    place.withLock { $0 = kept }
    return kept
  }

  private func note(_ kept: UnlockState) {
    let mark = try? kept.watchLocks()
    opening.withLock { $0 = Opening(kept: kept, lockMark: mark) }
  }
}
