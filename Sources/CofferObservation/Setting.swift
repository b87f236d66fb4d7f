import Coffer
import Observation

/// An observable setting, for SwiftUI views and `withObservationTracking`.
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
/// It needs neither `@ObservationIgnored` nor code of your own. As a property wrapper it is read without `.value`; the macro then
/// has to be told that the setting observes itself:
///
/// ```swift
/// @Observable @MainActor final class EditorModel {
///   @ObservationIgnored @Setting(.theme) var theme
/// }
///
/// model.theme = .dark
/// ```
///
/// `@ObservationIgnored` ``/Coffer/Preference`` does the same there, with the settings that are the standard ones at each use.
///
/// Changes by any process are reported, once for each tracking,
/// if they are effective: not those that a forced value hides. In SwiftUI, views that read `model.theme.value` are redrawn,
/// and `$model.theme.value` of a `@Bindable` model can be passed to controls.
///
/// Changes are reported on the main actor, after they take effect, so code tracked there misses none. Elsewhere, a change
/// that comes while the tracked code still runs may be missed; use ``/Coffer/Preferences/values(of:)`` there.
@propertyWrapper public final class Setting<Object: Codable & Sendable>: Observable, Sendable {
  /// The key of the setting.
  public let key: Key<Object>
  /// The settings that it reads and sets.
  public let preferences: Preferences
  private let tracking = SettingTracking()

  /// Creates a setting for a key.
  ///
  /// - Parameter preferences: The settings to use; by default, the current ``/Coffer/Preferences/standard``.
  public init(_ key: Key<Object>, in preferences: Preferences = .standard) {
    self.key = key
    self.preferences = preferences
  }

  /// The same as ``value``, for a property.
  public var wrappedValue: Object {
    get { value }
    set { value = newValue }
    _modify { yield &value }
  }

  /// The setting itself, for a property: it can be reset.
  public var projectedValue: Setting<Object> { self }

  /// The value of the setting.
  ///
  /// Errors are reported, and bad values are replaced by the last good one, as in ``/Coffer/Preferences/subscript(_:)``.
  public var value: Object {
    get {
      tracking.noteRead(of: key, in: preferences)
      return preferences[key]
    }
    set { preferences[key] = newValue }
    _modify {
      tracking.noteRead(of: key, in: preferences)
      yield &preferences[key]
    }
  }

  /// Removes the stored value, so that the default shows again.
  ///
  /// - Throws: As `Preferences.reset(_:)`.
  public func reset() throws {
    try preferences.reset(key)
  }
}
