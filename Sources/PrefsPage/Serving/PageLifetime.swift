import Synchronization

/// When the page ends: a while after its last tab was closed, or when it was unused for long.
final class PageLifetime: Sendable {
  enum End: Equatable {
    case lastTabClosed, idle
  }

  /// How long the page waits for another tab after its last one.
  static let tabGrace = Duration.seconds(60)

  private struct State {
    var lastUse: ContinuousClock.Instant
    var tabs = 0
    /// When the last tab was closed, or one began to load; nil before there was one.
    var lastTabGone: ContinuousClock.Instant?
  }

  let idleLimit: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let state: Mutex<State>

  init(idleLimit: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    (self.idleLimit, self.now) = (idleLimit, now)
    state = Mutex(State(lastUse: now()))
  }

  /// Records that the page was used.
  func use() { state.withLock { $0.lastUse = now() } }

  /// Records that a tab loads: it may be closed before it opens.
  func loadTab() { state.withLock { $0.lastTabGone = now() } }

  func openTab() { state.withLock { $0.tabs += 1 } }

  func closeTab() {
    state.withLock { state in
      state.tabs -= 1
      if state.tabs == 0 { state.lastTabGone = now() }
    }
  }

  /// Why the page ends now; nil if it does not.
  var end: End? {
    state.withLock { state in
      if now() - state.lastUse >= idleLimit { return .idle }
      if state.tabs == 0, let gone = state.lastTabGone, now() - max(gone, state.lastUse) >= Self.tabGrace {
        return .lastTabClosed
      }
      return nil
    }
  }
}
