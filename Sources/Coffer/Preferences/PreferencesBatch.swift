#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  /// Changes to settings that are made in one step; see `Preferences.performBatch(durability:_:)`.
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
    /// - Throws: As `Preferences.set(_:for:durability:)`.
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
    /// - Throws: As `Preferences.reset(_:)`.
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
    try proxy.performBatch(durability: durability) { try batch(&$0, body) }
  }

  func batch(_ changes: inout ChangeBatch, _ body: (inout Batch) throws -> Void) throws {
    var batch = Batch(self, changes)
    defer { changes = batch.changes }
    try body(&batch)
  }

  /// Atomically updates a typed key from its current value, across all threads and processes.
  ///
  /// ```swift
  /// try preferences.update(.launches) { $0 += 1 }
  /// try preferences.update(.recentFiles) { $0.append(path) }
  /// ```
  ///
  /// It runs a write transaction, committed when this returns. If nothing is set, `body` gets the value that shows instead.
  /// A stored value that cannot be read as one of this key is an error, and stays.
  ///
  /// - Parameters:
  ///   - durability: `.synced` waits for the disk, too.
  ///   - body: Changes the value. It must not use the settings.
  /// - Returns: The new value.
  /// - Throws: The errors of `body`, with nothing changed; `CofferError.invalidValue`; the errors of reading the value;
  ///   otherwise as `ConnectionProxy.update(_:inCollection:as:durability:_:)`.
  @discardableResult
  public func update<Object>(
    _ key: Key<Object>, durability: ConnectionProxy.Durability = .committed, _ body: (inout Object) throws -> Void
  ) throws -> Object {
    try update(key, durability: durability) { object in
      var object = object
      try body(&object)
      return object
    }
  }

  /// Atomically updates a typed key to the value that `body` returns, given its current value.
  ///
  /// ```swift
  /// try preferences.update(.theme) { $0 == .dark ? .light : .dark }
  /// ```
  ///
  /// - Returns: The new value.
  /// - Throws: As the form that changes the value.
  @discardableResult
  public func update<Object>(
    _ key: Key<Object>, durability: ConnectionProxy.Durability = .committed, _ body: (Object) throws -> Object
  ) throws -> Object {
    let collection = place(of: key)
    try overrides.requireUnlocked(managedName(of: key), key: key.name, in: collection)
    return try proxy.update(key, in: collection, shown: try value(of: key), durability, body)
  }
}
