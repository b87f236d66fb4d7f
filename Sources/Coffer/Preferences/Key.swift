/// A setting with its type and its default, declared once.
///
/// ```swift
/// extension Keys {
///   static let theme = Key("theme", in: "ui", default: Theme.dark)
///   static let retries = Key("retries", default: 3) { (0...10).contains($0) }
///   static let nickname = Key<String?>("nickname")
/// }
///
/// preferences[.theme] = .light
/// try preferences.set(5, for: .retries)
/// preferences[.nickname]  // nil: a String?
/// ```
///
/// The object has to be `Codable`; nil, for a key of an optional type, stands for no value. Declare a key as a constant, as
/// above, rather than make it anew for each use.
public final class Key<Object: Codable & Sendable>: Keys, @unchecked Sendable {
  /// What is read where nothing is set.
  public let defaultValue: Object
  /// Whether an object may be the value.
  let isValid: (@Sendable (Object) -> Bool)?

  /// Declares a key.
  ///
  /// - Parameters:
  ///   - name: The name of the setting.
  ///   - collection: The collection of the setting; nil for the one of the `Preferences` that is asked, and the default
  ///     collection of a proxy.
  ///   - defaultValue: What is read where nothing is set; it has to be valid.
  ///   - isValid: Whether an object may be the value. Setting another one throws; another one that is stored reads as the
  ///     default, and is reported.
  public init(
    _ name: String, in collection: String? = nil, default defaultValue: Object,
    validate isValid: (@Sendable (Object) -> Bool)? = nil
  ) {
    precondition(isValid?(defaultValue) ?? true, "The default of a key has to pass the key's own validation.")
    self.defaultValue = defaultValue
    self.isValid = isValid
    super.init(name: name, collection: collection)
  }

  /// Declares a key of an optional type, which is nil where nothing is set.
  ///
  /// - Parameters:
  ///   - name: The name of the setting.
  ///   - collection: The collection of the setting, as for other keys.
  ///   - isValid: Whether an object may be the value; nil always may.
  public convenience init<Wrapped>(
    _ name: String, in collection: String? = nil, validate isValid: (@Sendable (Wrapped) -> Bool)? = nil
  ) where Object == Wrapped? {
    self.init(name, in: collection, default: nil) { object in
      guard let isValid, let object else { return true }
      return isValid(object)
    }
  }

  /// - Throws: `CofferError.invalidValue`.
  func checked(_ object: Object, in collection: String) throws -> Object {
    guard isValid?(object) ?? true else { throw CofferError.invalidValue(collection: collection, key: name) }
    return object
  }
}
