import Coffer
import Observation
import Synchronization

/// A setting that tells when it changes, to whoever tracks what it reads: a SwiftUI view, `withObservationTracking`.
///
/// ```swift
/// @Observable @MainActor final class EditorModel {
///   let theme = Setting(.theme)
///   let fontSize = Setting(.fontSize)
///   var text = ""
/// }
///
/// model.fontSize.value += 1
/// withObservationTracking {
///   window.show(model.text, in: model.theme.value)
/// } onChange: {
///   Task { @MainActor in window.setNeedsDisplay() }
/// }
/// ```
///
/// It needs neither `@ObservationIgnored` nor code of one's own. Changes are told whoever makes them, other processes
/// included, once for each tracking, and only those that show: not of a value that a forced one hides. In SwiftUI, views that
/// read `model.theme.value` are drawn anew, and controls take `$model.theme.value` of a `@Bindable` model.
///
/// Changes are told on the main actor, after they show. So what is tracked there misses none. Elsewhere, one that comes
/// while the tracked code still runs may go by; use ``/Coffer/Preferences/values(of:)`` there.
public final class Setting<Object: Codable & Sendable>: Observable, Sendable {
  /// The key of the setting.
  public let key: Key<Object>
  /// Where the setting is.
  public let preferences: Preferences
  private let registrar = ObservationRegistrar()
  /// Keeps the changes coming, from the first reading on.
  private let registration = Mutex<(any Sendable)?>(nil)

  /// Makes a setting of a key.
  ///
  /// - Parameter preferences: Where it is; otherwise in what ``/Coffer/Preferences/standard`` is now.
  public init(_ key: Key<Object>, in preferences: Preferences = .standard) {
    self.key = key
    self.preferences = preferences
  }

  /// The value of the setting.
  ///
  /// Errors are reported, and bad values passed over for the last good one, as by ``/Coffer/Preferences/subscript(_:)``.
  public var value: Object {
    get {
      follow()
      registrar.access(self, keyPath: \.value)
      return preferences[key]
    }
    set { preferences[key] = newValue }
  }

  /// Removes what is set, so that the default shows again.
  ///
  /// - Throws: As ``/Coffer/Preferences/reset(_:)``.
  public func reset() throws {
    try preferences.reset(key)
  }

  /// Before the value is read: a change that comes in between is told.
  private func follow() {
    registration.withLock { registration in
      guard registration == nil else { return }
      registration = preferences.onChange(of: key) { [weak self] in
        // There, tracking has begun for what was read: the actor does one thing after the other.
        Task { @MainActor [weak self] in self?.tell() }
      }
    }
  }

  @MainActor private func tell() {
    registrar.withMutation(of: self, keyPath: \.value) {}
  }
}
