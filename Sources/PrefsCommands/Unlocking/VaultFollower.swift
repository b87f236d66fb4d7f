import Coffer
import Dispatch
import Synchronization

/// Has a ``KeptVault`` follow `prefs unlock` and `prefs lock` for as long as this is there, without polling.
///
/// Both replace a mark in a folder that is watched, and the time at which a key expires is known. What comes without a notice, as when
/// someone ends the agent, ``KeptVault/check()`` finds.
package final class VaultFollower: Sendable {
  private struct State {
    var watcher: FileWatcher?
    /// The store whose marks are watched.
    var watched: String?
    var task: Task<Void, Never>?
    var registration: CommitRegistration?
    /// When it looks without a notice.
    var next: ContinuousClock.Instant?
    var hasReported = false
  }

  private let kept: KeptVault
  private let changed: @Sendable () -> Void
  private let queue = DispatchQueue(label: "prefs.vault")
  private let state = Mutex(State())

  /// A key may be there for a moment after its time: clocks are not read at once.
  private static let patience = Duration.milliseconds(100)

  /// - Parameter changed: Is called when the vault was unlocked or locked.
  package init(_ kept: KeptVault, changed: @escaping @Sendable () -> Void = {}) {
    (self.kept, self.changed) = (kept, changed)
    let task = Task { [weak self, events = kept.events] in
      for await event in events { self?.receive(event) }
    }
    let registration = try? kept.onReplacement { [weak self, queue] in queue.async { [weak self] in self?.look() } }
    state.withLock { ($0.task, $0.registration) = (task, registration) }
    queue.async { [weak self] in self?.look() }
  }

  deinit { state.withLock { $0.task?.cancel() } }

  private func receive(_ event: VaultEvent) {
    if event == .keyReplaced(isFollowed: false) { kept.lockForNewKey() }
    changed()
    queue.async { [weak self] in self?.look() }
  }

  /// Checks the vault, and waits for what comes next; on the queue.
  private func look() {
    watch()
    kept.check()
    guard let left = kept.timeLeft else { return }
    let next = ContinuousClock.now + left + Self.patience
    let isNew = state.withLock { state in
      if let known = state.next, known > .now, known <= next { return false }
      state.next = next
      return true
    }
    guard isNew else { return }
    // By the wall clock, which runs while the machine sleeps, as that of the key does; and by another, as that one can be set back.
    let seconds = (left + Self.patience) / .seconds(1)
    queue.asyncAfter(wallDeadline: .now() + seconds) { [weak self] in self?.look() }
    queue.asyncAfter(deadline: .now() + seconds) { [weak self] in self?.look() }
  }

  /// Watches the marks; again, if they were removed.
  private func watch() {
    let store = kept.storeID
    guard state.withLock({ $0.watcher == nil || $0.watched != store }) || !kept.hasMarks else { return }
    do {
      let watcher = try kept.watchMarks(queue) { [weak self] in self?.look() }
      state.withLock { ($0.watcher, $0.watched) = (watcher, store) }
    } catch {
      guard state.withLock({ !$0.hasReported }) else { return }
      state.withLock { $0.hasReported = true }
      kept.report("`prefs lock` and `prefs unlock` are noticed only when the vault is used: \(error)")
    }
  }
}
