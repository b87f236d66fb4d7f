// Typed keys on a proxy: what `Preferences` does beside its layers goes through here as well.

extension ConnectionProxy {
  // MARK: Reading

  /// The value of a typed key: the one that is set, else its default.
  ///
  /// A key without a collection is one of the default collection here. Setting cannot throw either: where it fails, as where
  /// a value cannot be read, that is reported to the logger and to ``errors``.
  public subscript<Object>(key: Key<Object>) -> Object {
    get {
      do {
        return try value(of: key)
      } catch {
        database.report(error, forKey: key.name, inCollection: key.collection ?? "")
        return key.defaultValue
      }
    }
    set {
      do {
        try set(newValue, for: key)
      } catch {
        database.report(error, forKey: key.name, inCollection: key.collection ?? "")
      }
    }
  }

  /// The value of a typed key: the one that is set, else its default.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored, `.invalidValue` when the value does not pass the
  ///   key's validation; `.closed`, `.damaged` or `.inputOutput`.
  public func value<Object>(of key: Key<Object>) throws -> Object {
    try object(for: key, inCollection: key.collection ?? "") ?? key.defaultValue
  }

  /// What is set for a typed key in a collection, nil when nothing is.
  func object<Object>(for key: Key<Object>, inCollection collection: String) throws -> Object? {
    try object(forKey: key.name, inCollection: collection, as: Object.self).map { try key.checked($0, in: collection) }
  }

  // MARK: Setting

  /// Sets the value of a typed key; nil, for one of an optional type, removes it.
  ///
  /// - Throws: `CofferError.invalidValue` when the value does not pass the key's validation, with nothing changed;
  ///   otherwise as `setObject(_:forKey:inCollection:durability:)`.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, durability: Durability = .asynchronous
  ) throws {
    try set(object, for: key, inCollection: key.collection ?? "", durability: durability)
  }

  func set<Object>(
    _ object: Object, for key: Key<Object>, inCollection collection: String, durability: Durability
  ) throws {
    let object = try key.checked(object, in: collection)
    if isNil(object) {
      try removeObject(forKey: key.name, inCollection: collection, durability: durability)
    } else {
      try setObject(object, forKey: key.name, inCollection: collection, durability: durability)
    }
  }

  /// Removes what is set for a typed key, so that its default shows again.
  ///
  /// - Throws: As `removeObject(forKey:inCollection:durability:)`.
  public func removeObject<Object>(for key: Key<Object>, durability: Durability = .asynchronous) throws {
    try removeObject(forKey: key.name, inCollection: key.collection ?? "", durability: durability)
  }
}
