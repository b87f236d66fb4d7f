#if canImport(SwiftUI)
  import SwiftUI
#endif

/// A property that is a setting.
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
/// It reads and sets the typed key in ``Preferences/standard``, which it looks up at each use, or in the `Preferences` it
/// is given. A SwiftUI view that has such a property is drawn anew when the setting changes, whoever changes it; `$theme.binding`
/// is what its controls take. Errors are reported as those of ``Preferences/subscript(_:)``.
@propertyWrapper
public struct Preference<Object: Codable & Sendable>: Sendable {
  /// The key of the setting.
  public let key: Key<Object>
  private let given: Preferences?
  #if canImport(SwiftUI)
    /// Of the view whose property this is; outside of views it does nothing.
    @State var redraws = Redraws()
  #endif

  /// Makes a property that is the setting for a key.
  ///
  /// - Parameter preferences: Where the setting is; nil for ``Preferences/standard``.
  public init(_ key: Key<Object>, in preferences: Preferences? = nil) {
    self.key = key
    given = preferences
  }

  /// Where the setting is.
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
  }

  /// The property itself, which has the setting's changes, and can reset it.
  public var projectedValue: Preference<Object> { self }

  /// The value of the setting: the present one, then each that it changes to, by other processes too.
  ///
  /// ```swift
  /// for await theme in editor.$theme.values { window.apply(theme) }
  /// ```
  ///
  /// Where changes cannot be had, that is reported, and the present value is the only one; of a closed store there is none.
  public var values: Preferences.Values<Object> {
    let preferences = preferences
    do {
      return try preferences.values(of: key)
    } catch {
      preferences.proxy.database.report(error, forKey: key.name, inCollection: key.collection ?? preferences.collection)
      return Preferences.Values(key, of: preferences, changes: nil)
    }
  }

  /// Removes what is set, so that the default shows again.
  ///
  /// - Throws: As ``Preferences/reset(_:)``.
  public func reset() throws {
    try preferences.reset(key)
  }
}
