#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  /// Changes to settings that are made in one step; see ``Preferences/performBatch(durability:_:)``.
  public struct Batch {
    private let preferences: Preferences
    fileprivate var changes: ChangeBatch

    fileprivate init(_ preferences: Preferences, _ changes: ChangeBatch) {
      self.preferences = preferences
      self.changes = changes
    }

    /// Sets the value of a key; nil removes it.
    ///
    /// - Throws: As ``Preferences/set(_:forKey:)-(Object?,_)``.
    public mutating func set<Object: Encodable>(_ value: Object?, forKey key: String) throws {
      try preferences.overrides.requireUnlocked(
        preferences.managedName(ofKey: key), key: key, in: preferences.collection)
      try changes.setObject(value, forKey: key, inCollection: preferences.collection)
    }

    /// Sets the value of a key, with an expiry; see ``Preferences/set(_:forKey:expires:due:)``.
    ///
    /// - Throws: As ``Preferences/set(_:forKey:)-(Object?,_)``.
    public mutating func set<Object: Encodable>(
      _ value: Object, forKey key: String, expires: Date?, due: Date? = nil
    ) throws {
      try preferences.overrides.requireUnlocked(
        preferences.managedName(ofKey: key), key: key, in: preferences.collection)
      try changes.setObject(value, forKey: key, inCollection: preferences.collection, expires: expires, due: due)
    }

    /// Sets the value of a typed key; for an optional type, nil removes it.
    ///
    /// - Parameters:
    ///   - expires: When the value expires; nil for never.
    ///   - due: When the value should be renewed; nil for never.
    /// - Throws: As ``Preferences/set(_:for:durability:)``.
    public mutating func set<Object>(
      _ object: Object, for key: Key<Object>, expires: Date? = nil, due: Date? = nil
    ) throws {
      let collection = preferences.place(of: key)
      try preferences.overrides.requireUnlocked(preferences.managedName(of: key), key: key.name, in: collection)
      let object = try preferences.proxy.checked(object, for: key, in: collection)
      if isNil(object) {
        try changes.removeObject(forKey: key.name, inCollection: collection)
      } else {
        try changes.setObject(object, forKey: key.name, inCollection: collection, expires: expires, due: due)
      }
    }

    /// Removes the value of a key.
    ///
    /// - Throws: As ``Preferences/removeObject(forKey:)``.
    public mutating func removeObject(forKey key: String) throws {
      try changes.removeObject(forKey: key, inCollection: preferences.collection)
    }

    /// Removes the value of a typed key.
    ///
    /// - Throws: As ``Preferences/reset(_:)``.
    public mutating func reset<Object>(_ key: Key<Object>) throws {
      try changes.removeObject(forKey: key.name, inCollection: preferences.place(of: key))
    }
  }

  /// Makes several changes in one step: they become visible together, make one event, and are written in one transaction.
  ///
  /// ```swift
  /// try preferences.performBatch { batch in
  ///   try batch.set(.light, for: .theme)
  ///   try batch.set(80, forKey: "width")
  /// }
  /// ```
  ///
  /// - Throws: The errors of `body`, with nothing changed; otherwise as ``set(_:forKey:)-(Object?,_)``. With a stronger
  ///   durability also the errors of a flush.
  public func performBatch(
    durability: ConnectionProxy.Durability = .asynchronous, _ body: (inout Batch) throws -> Void
  ) throws {
    try proxy.performBatch(durability: durability) { changes in
      var batch = Batch(self, changes)
      defer { changes = batch.changes }
      try body(&batch)
    }
  }

  /// Atomically updates a typed key from its current value.
  ///
  /// ```swift
  /// try preferences.update(.launches) { $0 + 1 }
  /// ```
  ///
  /// It runs a write transaction, committed when this returns. If nothing is set, `body` gets the value that shows instead.
  ///
  /// - Parameter body: Returns the new value. It must not use the settings.
  /// - Returns: The new value.
  /// - Throws: The errors of `body`, with nothing changed; `CofferError.invalidValue`; the errors of reading the value;
  ///   otherwise as `ConnectionProxy.update(_:inCollection:as:durability:_:)`.
  @discardableResult
  public func update<Object>(_ key: Key<Object>, _ body: (Object) throws -> Object) throws -> Object {
    let collection = place(of: key)
    try overrides.requireUnlocked(managedName(of: key), key: key.name, in: collection)
    let shown = try value(of: key)
    var result = shown
    try proxy.update(key.name, inCollection: collection, as: Object.self) { object in
      result = try proxy.checked(body(object ?? shown), for: key, in: collection)
      return isNil(result) ? nil : result
    }
    return result
  }
}
