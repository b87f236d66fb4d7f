import Coffer
import PrefsCommands
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The vault of the page's store: how it is opened, and when it is locked again, however it was opened.
final class PageVault: Sendable {
  /// Until when it is open.
  private enum Opening {
    /// By what was named or typed: until then.
    case until(ContinuousClock.Instant)
    /// With the key that `prefs unlock` keeps: as long as that.
    case kept
  }

  private struct State {
    var opening: Opening?
    /// Where `prefs unlock` keeps the key of the vault that was opened.
    var kept: UnlockState?
    /// The end of the kept key when the vault was locked by hand: that key is not used again.
    var refusedEnd: Date?
    /// What `prefs lock` had left when the vault was opened.
    var lockMark: LockMark?
  }

  private let database: Database
  private let session: CommandSession
  private let time: Duration
  /// What was named for it when the program was started, and can be read again.
  private let keyFile: KeySource?
  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant
  private let changed: @Sendable (_ isUnlocked: Bool) -> Void

  private var vault: Vault { database.vault }

  /// - Parameters:
  ///   - time: How long it stays open.
  ///   - now: The clock, which tests put forward.
  ///   - changed: Is told when it is opened and locked.
  init(
    _ database: Database, _ session: CommandSession, keyFile: KeySource?, time: Duration,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    changed: @escaping @Sendable (_ isUnlocked: Bool) -> Void
  ) {
    (self.database, self.session, self.keyFile, self.time) = (database, session, keyFile, time)
    (self.now, self.changed) = (now, changed)
    // It may be open from the start.
    if vault.isUnlocked { note(.until(now() + time)) }
  }

  var isUnlocked: Bool { vault.isUnlocked }
  var hasKeyFile: Bool { keyFile != nil }

  private func kept() throws -> UnlockState {
    UnlockState(storeID: try Database.storeID(at: session.path), options: session.options)
  }

  // MARK: - Opening

  /// Opens it with the key that `prefs unlock` keeps, unless that was there already when the vault was locked by hand: while it is
  /// locked, it goes unnoticed if someone has said of a sealed collection that it is not one.
  func unlockWithKeptKey() throws {
    guard vault.wasFound, !vault.isUnlocked else { return }
    let kept = try kept()
    guard let key = kept.key(), !isRefused(kept) else { return }
    do { try vault.unlock(vaultKey: key) } catch CofferError.wrongKey {
      // The vault has a new key since.
      return
    }
    note(.kept)
  }

  private func isRefused(_ kept: UnlockState) -> Bool {
    guard let refused = state.withLock({ $0.refusedEnd }) else { return false }
    // The end is known to the moment, but for the way to an agent.
    return kept.end().map { abs($0.timeIntervalSince(refused)) < 1 } ?? true
  }

  /// Opens it with its passphrase or a recovery key, in this process alone; an empty one stands for the key file that was named.
  func unlock(_ secret: SecretBytes) throws {
    guard try vault.exists() else { throw Failure(.notFound, "the store has no vault.") }
    do {
      if secret.count == 0, let keyFile { try vault.unlock(keyFile) } else { try vault.unlock(.passphrase(secret)) }
    } catch CofferError.wrongKey {
      throw Failure(.wrongKey, "That is not the passphrase of the vault.")
    }
    note(.until(now() + time))
  }

  private func note(_ opening: Opening) {
    let kept = try? kept()
    let mark = try? kept?.watchLocks()
    state.withLock { $0 = State(opening: opening, kept: kept, refusedEnd: nil, lockMark: mark) }
    changed(true)
  }

  // MARK: - Locking

  /// Locks it until it is opened again on purpose.
  func lock() {
    let end = try? kept().end()
    state.withLock { $0 = State(refusedEnd: end) }
    vault.lock()
    changed(false)
  }

  /// Locks it where its time is over, or `prefs lock` was run; called every moment.
  func check() {
    let state = state.withLock { $0 }
    guard vault.isUnlocked, let opening = state.opening else { return }
    let isOver =
      switch opening {
      case .until(let end): now() >= end
      case .kept: state.kept?.end() == nil
      }
    guard isOver || state.kept?.lockMark != state.lockMark else { return }
    lock()
  }
}
