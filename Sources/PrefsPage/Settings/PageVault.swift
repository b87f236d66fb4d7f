import Coffer
import PrefsCommands
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Unlocks the vault of the page's store, and locks it again in time, however it was unlocked.
final class PageVault: Sendable {
  /// Until when it is unlocked.
  private enum Opening {
    /// Unlocked with a named or typed key: until then.
    case until(ContinuousClock.Instant)
    /// Unlocked with the key that `prefs unlock` keeps: as long as that is kept.
    case kept
  }

  private struct State {
    var opening: Opening?
    /// Where `prefs unlock` keeps the key of the unlocked vault.
    var kept: UnlockState?
    /// The expiry of the kept key when the vault was locked by hand: that key is not used again.
    var refusedEnd: Date?
    /// The mark of `prefs lock` when the vault was unlocked.
    var lockMark: LockMark?
  }

  private let database: Database
  private let session: CommandSession
  private let time: Duration
  /// The key source that was named at the start, if it can be read again.
  private let keyFile: KeySource?
  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant
  private let changed: @Sendable (_ isUnlocked: Bool) -> Void

  private var vault: Vault { database.vault }

  /// - Parameters:
  ///   - time: How long it stays unlocked.
  ///   - now: The clock, which tests advance.
  ///   - changed: Called when it is unlocked or locked.
  init(
    _ database: Database, _ session: CommandSession, keyFile: KeySource?, time: Duration,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    changed: @escaping @Sendable (_ isUnlocked: Bool) -> Void
  ) {
    (self.database, self.session, self.keyFile, self.time) = (database, session, keyFile, time)
    (self.now, self.changed) = (now, changed)
    // It may be unlocked from the start.
    if vault.isUnlocked { note(.until(now() + time), lockMark: presentMark) }
  }

  var isUnlocked: Bool { vault.isUnlocked }
  var hasKeyFile: Bool { keyFile != nil }

  private func kept() throws -> UnlockState {
    UnlockState(storeID: try Database.storeID(at: session.path), options: session.options)
  }

  // MARK: - Unlocking

  /// Unlocks it with the key that `prefs unlock` keeps, unless that key was already kept when the vault was locked by hand.
  ///
  /// While the vault is locked, it would go unnoticed if someone had marked a sealed collection as not sealed.
  func unlockWithKeptKey() throws {
    guard vault.wasFound, !vault.isUnlocked else { return }
    let kept = try kept()
    guard let key = kept.key(), !isRefused(kept) else { return }
    do { try vault.unlock(vaultKey: key) } catch CofferError.wrongKey {
      // The vault has a new key since.
      return
    }
    note(.kept, lockMark: presentMark)
  }

  private func isRefused(_ kept: UnlockState) -> Bool {
    guard let refused = state.withLock({ $0.refusedEnd }) else { return false }
    // The expiry is known precisely, except for the delay of asking an agent.
    return kept.end().map { abs($0.timeIntervalSince(refused)) < 1 } ?? true
  }

  /// Unlocks it with its passphrase or a recovery key, only in this process; an empty one stands for the named key file.
  func unlock(_ secret: SecretBytes) throws {
    guard try vault.exists() else { throw Failure(.notFound, "the store has no vault.") }
    let mark = presentMark
    do {
      let named = secret.count == 0 ? keyFile : nil
      let opening = try vault.opening(with: named ?? .passphrase(secret))
      // Stretching it has taken a while.
      if let mark, presentMark?.isLater(than: mark) ?? false { throw CofferError.vaultLocked(collection: nil) }
      try vault.unlock(opening)
    } catch CofferError.wrongKey {
      throw Failure(.wrongKey, "That is not the passphrase of the vault.")
    } catch CofferError.vaultLocked {
      throw Failure(.conflict, "The vault was locked after the passphrase was typed.")
    }
    note(.until(now() + time), lockMark: mark)
  }

  /// The mark of the last `prefs lock`.
  private var presentMark: LockMark? {
    let kept = try? kept()
    return (try? kept?.watchLocks()) ?? kept?.lockMark
  }

  /// - Parameter lockMark: The mark before it was unlocked.
  private func note(_ opening: Opening, lockMark: LockMark?) {
    state.withLock { $0 = State(opening: opening, kept: try? kept(), refusedEnd: nil, lockMark: lockMark) }
    changed(vault.isUnlocked)
  }

  // MARK: - Locking

  /// Locks it until the user unlocks it again.
  func lock() {
    let end = try? kept().end()
    state.withLock { $0 = State(refusedEnd: end) }
    vault.lock()
    changed(false)
  }

  /// Locks it if its time is over, or `prefs lock` was run; called every moment.
  func check() {
    let state = state.withLock { $0 }
    guard vault.isUnlocked, let opening = state.opening else { return }
    let isOver =
      switch opening {
      case .until(let end): now() >= end
      case .kept: state.kept?.end() == nil
      }
    let isLocked = state.lockMark.map { state.kept?.lockMark.isLater(than: $0) ?? false } ?? false
    guard isOver || isLocked else { return }
    lock()
  }
}
