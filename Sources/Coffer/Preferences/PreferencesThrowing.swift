extension Preferences {
  /// Reads settings with errors: ``value(forKey:)`` and ``object(forKey:as:)`` as those of a `Preferences`, which return the default
  /// if a setting cannot be read.
  ///
  /// Both throw `CofferError.damaged`, `.inputOutput`, `.closed` and similar errors.
  public struct Throwing: Sendable {
    let preferences: Preferences

    /// As ``Preferences/value(forKey:)``.
    public func value(forKey key: String) throws -> Value? {
      try preferences.find(key)?.object
    }

    /// As ``Preferences/object(forKey:as:)``.
    ///
    /// - Throws: Also `CofferError.notDecodable` when the value has another type.
    public func object<Object: Decodable>(forKey key: String, as type: Object.Type) throws -> Object? {
      let proxy = preferences.proxy
      return try preferences.find(key, as: type) {
        try proxy.object(forKey: key, inCollection: $0, as: type)
      }?.object
    }
  }
}
