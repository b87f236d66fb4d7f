#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ConnectionProxy {
  // MARK: Typed keys, without blocking

  /// Sets the value of a typed key without blocking a thread; for an optional type, nil removes it.
  ///
  /// - Throws: `CofferError.invalidValue`; otherwise as
  ///   `setObject(_:forKey:inCollection:durability:)`.
  public func set<Object>(_ object: Object, for key: Key<Object>, durability: Durability) async throws {
    try await set(object, for: key, inCollection: key.collection ?? "", dates: .none, durability: durability)
  }

  /// Sets the value of a typed key, with an expiry, without blocking a thread; for an optional type, nil removes it.
  ///
  /// - Throws: As `set(_:for:durability:)`.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, expires: Date?, due: Date? = nil, durability: Durability
  ) async throws {
    try await set(
      object, for: key, inCollection: key.collection ?? "", dates: ItemDates(expires: expires, due: due),
      durability: durability)
  }

  func set<Object>(
    _ object: Object, for key: Key<Object>, inCollection collection: String, dates: ItemDates, durability: Durability
  ) async throws {
    let object = try checked(object, for: key, in: collection)
    try await change(key.name, in: collection, durability) { core in
      isNil(object) ? .removed : try core.setting(object, dates: dates, key.name, in: collection)
    }
  }

  /// Removes the stored value of a typed key without blocking a thread.
  ///
  /// - Throws: As `set(_:for:durability:)`.
  public func reset<Object>(_ key: Key<Object>, durability: Durability) async throws {
    try await removeObject(forKey: key.name, inCollection: key.collection ?? "", durability: durability)
  }

  // MARK: Reading and writing in one step

  /// Atomically updates a typed key; see `Preferences.update(_:durability:_:)`.
  ///
  /// - Parameter shown: The value if the key is absent.
  func update<Object>(
    _ key: Key<Object>, in collection: String, shown: Object, _ durability: Durability,
    _ body: (Object) throws -> Object
  ) throws -> Object {
    try checkMayWrite(collection)
    return try pending.change(key.name, in: collection, durability) {
      try updated($0, key, in: collection, shown: shown, body)
    }
  }

  func update<Object>(
    _ key: Key<Object>, in collection: String, shown: Object, _ durability: Durability,
    _ body: @escaping @Sendable (Object) throws -> Object
  ) async throws -> Object {
    try checkMayWrite(collection)
    return try await pending.change(key.name, in: collection, durability) {
      try self.updated($0, key, in: collection, shown: shown, body)
    }
  }

  private func updated<Object>(
    _ item: HeldItem?, _ key: Key<Object>, in collection: String, shown: Object, _ body: (Object) throws -> Object
  ) throws -> (HeldItem?, Object) {
    let old = try item.map { try decode($0, key.name, in: collection) as Object }
    let new = try checked(body(old ?? shown), for: key, in: collection)
    return (isNil(new) ? nil : try item.with(new, key.name, in: collection, database.core), new)
  }
}
