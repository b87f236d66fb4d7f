import Observation

#if canImport(SwiftUI)
  import SwiftUI
#endif

/// A property wrapper for a setting.
///
/// ```swift
/// struct Editor {
///   @Preference(.theme) var theme
///   @Preference(.fontSize) var fontSize
/// }
///
/// let editor = Editor()
/// if editor.theme == .dark { editor.fontSize += 1 }
/// for await theme in editor.$theme.values { window.apply(theme) }
/// ```
///
/// In an `@Observable` model it is `@ObservationIgnored @Preference(.theme) var theme`: the property observes itself, like `Setting`
/// of the module CofferObservation. Without `@ObservationIgnored` it does not compile.
///
/// It reads and sets the typed key in ``Preferences/standard``, looked up at each use, or in the `Preferences` it is given.
/// A SwiftUI view with such a property is redrawn when any process changes the setting; pass `$theme.binding` to its
/// controls. Errors are reported as for ``Preferences/subscript(_:)``.
@propertyWrapper
public struct Preference<Object: Codable & Sendable>: Sendable {
  /// The key of the setting.
  public let key: Key<Object>
  private let given: Preferences?
  /// Of a property of an `@Observable` class.
  private let tracking = SettingTracking()
  #if canImport(SwiftUI)
    /// Redraws the view that has this property; does nothing outside of views.
    @State var redraws = Redraws()
  #endif

  /// Creates a property for the setting of a key.
  ///
  /// - Parameter preferences: The settings to use; nil for ``Preferences/standard``.
  public init(_ key: Key<Object>, in preferences: Preferences? = nil) {
    self.key = key
    given = preferences
  }

  /// The settings that the property reads and sets.
  public var preferences: Preferences { given ?? .standard }

  /// The value of the setting.
  public var wrappedValue: Object {
    get {
      #if canImport(SwiftUI)
        redraws.recordAccess()
      #endif
      return preferences[key]
    }
    nonmutating set { preferences[key] = newValue }
    nonmutating _modify {
      #if canImport(SwiftUI)
        redraws.recordAccess()
      #endif
      yield &preferences[key]
    }
  }

  /// The value of the setting, for the compiler, where the property is one of a class: in an `@Observable` class, code that has read
  /// it is notified of changes.
  public static subscript<Owner: AnyObject>(
    _enclosingInstance owner: Owner, wrapped _: KeyPath<Owner, Object>, storage storage: KeyPath<Owner, Preference>
  ) -> Object {
    get { owner[keyPath: storage].noteRead(in: owner).wrappedValue }
    set { owner[keyPath: storage].wrappedValue = newValue }
    _modify { yield &owner[keyPath: storage].noteRead(in: owner).wrappedValue }
  }

  private func noteRead(in owner: AnyObject) -> Preference {
    // Other classes need no changes, which would cost each store a watcher.
    if owner is any Observable { tracking.noteRead(of: key, in: preferences) }
    return self
  }

  /// The property itself, which gives access to the setting's changes and can reset it.
  public var projectedValue: Preference<Object> { self }

  /// The values of the setting: the current one, then each new one, including those set by other processes.
  ///
  /// ```swift
  /// for await theme in editor.$theme.values { window.apply(theme) }
  /// ```
  ///
  /// If changes cannot be observed, that is reported, and the current value is the only one. A closed store yields nothing.
  public var values: Preferences.Values<Object> {
    let preferences = preferences
    do {
      return try preferences.values(of: key)
    } catch {
      preferences.proxy.database.report(error, forKey: key.name, inCollection: key.collection ?? preferences.collection)
      return Preferences.Values(key, of: preferences, changes: nil)
    }
  }

  /// Removes the stored value, so that the default shows again.
  ///
  /// - Throws: As `Preferences.reset(_:)`.
  public func reset() throws {
    try preferences.reset(key)
  }
}
