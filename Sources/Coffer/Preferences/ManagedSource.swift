import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// The administrator's settings as the files have them now, or as they were when all files were last usable.
package final class ManagedSource: Sendable {
  typealias Listener = @Sendable (_ before: ManagedSettings, _ now: ManagedSettings) -> Void

  private struct State {
    var settings: ManagedSettings
    /// nil if nothing is watched, or watching failed.
    var watcher: FileWatcher?
    /// nil until settings start to listen.
    var handlers: Handlers?
    var listeners: [(number: UInt64, receive: Listener)] = []
    var lastNumber: UInt64 = 0
    /// Why the files cannot be used, and whether that was reported.
    var problem: (error: any Error, isReported: Bool)?
  }

  /// What to do when the files change.
  private struct Handlers: Sendable {
    /// Runs when settings have changed, before listeners are notified.
    let didChange: @Sendable () -> Void
    let report: @Sendable (any Error) -> Void
  }

  private let folders: ManagedSettings.Folders
  private let state: Lock<State>
  /// Most hosts have no such files, and every read of a setting checks this.
  private let hasSettings: Atomic<Bool>
  private let queue = DispatchQueue(label: "coffer.managed")

  /// Follows the files of an application.
  ///
  /// - Throws: The errors of reading the files.
  package convenience init(ofApplication identifier: String) throws {
    try self.init(following: ManagedSettings.Folders(ofApplication: identifier))
  }

  /// Reads the files, and watches them for as long as this object lives.
  ///
  /// - Throws: The errors of reading them. A failure to watch them is reported instead.
  init(following folders: ManagedSettings.Folders) throws {
    self.folders = folders
    state = Lock(State(settings: ManagedSettings(ofCollection: folders.application)))
    hasSettings = Atomic(false)
    // Watch first, so that no change is missed in between.
    watch()
    accept(try ManagedSettings(in: folders))
  }

  /// The settings, or nil.
  @inline(__always)
  var current: ManagedSettings? {
    hasSettings.load(ordering: .acquiring) ? state.withLock { $0.settings } : nil
  }

  // MARK: Listening

  /// Begins to notify these settings, and their `errors`, of changes to the files.
  func start(for preferences: Preferences) {
    let collection = preferences.parent
    start(
      didChange: { [weak proxy = preferences.proxy] in proxy?.state.recheckKeys() },
      report: { [weak proxy = preferences.proxy] error in
        proxy?.database.report(
          error, forKey: nil, inCollection: collection, instead: "the last good managed settings")
      })
  }

  /// - Parameters:
  ///   - didChange: Called when settings have changed, before listeners are notified.
  ///   - report: Called once with each reason why the files cannot be used, or not be watched.
  package func start(
    didChange: @escaping @Sendable () -> Void, report: @escaping @Sendable (any Error) -> Void
  ) {
    state.withLock { $0.handlers = Handlers(didChange: didChange, report: report) }
    reportOnce()
  }

  /// Calls `receive` on each change, until the returned object is released.
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
      // Release the listener outside the lock: its deinit may call back.
      _ = source.state.withLock { state in
        state.listeners.firstIndex { $0.number == number }.map { state.listeners.remove(at: $0) }
      }
    }
  }

  // MARK: Following

  private func readAgain() {
    watch()
    do {
      accept(try ManagedSettings(in: folders))
    } catch {
      note(error)
    }
  }

  private func watch() {
    do {
      let watcher = try FileWatcher(paths: folders.watchedPaths, queue: queue) { [weak self] in self?.readAgain() }
      state.withLock { $0.watcher = watcher }
    } catch {
      // Paths already watched stay watched.
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
      // The same problem again is not reported twice.
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
