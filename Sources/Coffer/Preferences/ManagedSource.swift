import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// What an administrator gives, as the files say now, or said when all of them could be used last.
final class ManagedSource: Sendable {
  typealias Listener = @Sendable (_ before: ManagedSettings, _ now: ManagedSettings) -> Void

  private struct State {
    var settings: ManagedSettings
    /// nil where nothing is followed, or could be.
    var watcher: FileWatcher?
    /// nil before there are settings for which they are followed.
    var handlers: Handlers?
    var listeners: [(number: UInt64, receive: Listener)] = []
    var lastNumber: UInt64 = 0
    /// What keeps files from being used, and whether that was reported.
    var problem: (error: any Error, isReported: Bool)?
  }

  /// What is done with what the files come to say.
  private struct Handlers: Sendable {
    /// Runs when settings have changed, before listeners hear of it.
    let didChange: @Sendable () -> Void
    let report: @Sendable (any Error) -> Void
  }

  private let folders: ManagedSettings.Folders
  private let state: Lock<State>
  /// Most hosts have no such files, and every read of a setting asks.
  private let hasSettings: Atomic<Bool>
  private let queue = DispatchQueue(label: "coffer.managed")

  /// Reads the files, and follows them from now on, as long as it is kept.
  ///
  /// - Throws: What reading them throws. Where they cannot be followed, that is reported.
  init(following folders: ManagedSettings.Folders) throws {
    self.folders = folders
    state = Lock(State(settings: ManagedSettings()))
    hasSettings = Atomic(false)
    // Watched first, so that no change goes by in between.
    watch()
    accept(try ManagedSettings(in: folders))
  }

  /// The settings; nil where there are none.
  @inline(__always)
  var current: ManagedSettings? {
    hasSettings.load(ordering: .acquiring) ? state.withLock { $0.settings } : nil
  }

  // MARK: Listening

  /// Has readers of these settings, and their `errors`, hear of what the files come to say.
  func start(for preferences: Preferences) {
    let collection = preferences.parent
    let handlers = Handlers(
      didChange: { [weak proxy = preferences.proxy] in proxy?.state.checkKeysAnew() },
      report: { [weak proxy = preferences.proxy] error in
        proxy?.database.report(
          error, forKey: nil, inCollection: collection, instead: "what managed settings were before")
      })
    state.withLock { $0.handlers = handlers }
    reportOnce()
  }

  /// Has `receive` hear of changes as long as what this returns is kept.
  func listen(_ receive: @escaping Listener) -> any Sendable {
    let number = state.withLock { state in
      state.lastNumber += 1
      state.listeners.append((state.lastNumber, receive))
      return state.lastNumber
    }
    return Registration(source: self, number: number)
  }

  private final class Registration: Sendable {
    private let source: ManagedSource
    private let number: UInt64

    init(source: ManagedSource, number: UInt64) { (self.source, self.number) = (source, number) }

    deinit {
      // The listener goes outside of the lock: its end may call back.
      _ = source.state.withLock { state in
        state.listeners.firstIndex { $0.number == number }.map { state.listeners.remove(at: $0) }
      }
    }
  }

  // MARK: Following

  private func readAnew() {
    watch()
    do {
      accept(try ManagedSettings(in: folders))
    } catch {
      note(error)
    }
  }

  private func watch() {
    do {
      let watcher = try FileWatcher(paths: folders.watchedPaths, queue: queue) { [weak self] in self?.readAnew() }
      state.withLock { $0.watcher = watcher }
    } catch {
      // What is watched already stays so.
      note(CofferError.translated(error))
    }
  }

  private func accept(_ settings: ManagedSettings) {
    let (before, handlers, listeners) = state.withLock { state in
      let before = state.settings
      state.settings = settings
      if state.watcher != nil { state.problem = nil }
      hasSettings.store(!settings.isEmpty, ordering: .releasing)
      return (before, state.handlers, state.listeners)
    }
    guard !before.differingKeys(from: settings).isEmpty else { return }
    handlers?.didChange()
    for listener in listeners { listener.receive(before, settings) }
  }

  private func note(_ error: any Error) {
    state.withLock { state in
      // The same again is no news.
      if state.problem.map({ "\($0.error)" }) != "\(error)" { state.problem = (error, false) }
    }
    reportOnce()
  }

  private func reportOnce() {
    let news = state.withLock { state -> (Handlers, any Error)? in
      guard let handlers = state.handlers, let problem = state.problem, !problem.isReported else { return nil }
      state.problem?.isReported = true
      return (handlers, problem.error)
    }
    if let (handlers, error) = news { handlers.report(error) }
  }
}
