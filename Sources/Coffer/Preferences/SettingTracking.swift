import Observation
import Synchronization

/// Reports reads of a setting to Observation's tracking and, from the first read on, changes by any process.
package final class SettingTracking: Observable, Sendable {
  private let registrar = ObservationRegistrar()
  private let following = Mutex(Following())

  /// The settings whose changes come; others take their place when ``Preferences/standard`` is set.
  private struct Following: Sendable {
    weak var preferences: Preferences?
    /// Keeps the changes coming.
    var registration: (any Sendable)?
  }

  package init() {}

  /// Stands for the value in the tracking, which records only reads and changes.
  private var value: Void { () }

  /// Called before a value is read, so that a change in between is reported.
  package func noteRead(of key: Keys, in preferences: Preferences) {
    following.withLock { following in
      guard following.registration == nil || following.preferences !== preferences else { return }
      let registration = preferences.onChange(of: key) { [weak self] in
        // There, tracking of what was read has begun: the actor does one thing after another.
        Task { @MainActor [weak self] in self?.noteChange() }
      }
      following = Following(preferences: preferences, registration: registration)
    }
    registrar.access(self, keyPath: \.value)
  }

  @MainActor private func noteChange() {
    registrar.withMutation(of: self, keyPath: \.value) {}
  }
}
