import Coffer

// `Object?` has no type where a program writes `nil`, and then these are chosen.

extension ConnectionProxy {
  /// Removes a key; the overload for a literal `nil` as object.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try removeObject(forKey: key, inCollection: collection, durability: durability)
  }

  /// Sets the object of a key and clears its metadata; the overload for a literal `nil` as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?,
    durability: Durability = .asynchronous
  ) throws {
    try setObject(object, forKey: key, inCollection: collection, durability: durability)
  }

  /// Removes a key; the overload for a literal `nil` as object.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try removeObject(forKey: key, inCollection: collection, durability: durability)
  }
}

extension ChangeBatch {
  /// Removes a key; the overload for a literal `nil` as object.
  ///
  /// - Throws: `CofferError.collectionNotAllowed`.
  public mutating func setObject(_ nothing: Never?, forKey key: String, inCollection collection: String = "") throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Sets the object of a key and clears its metadata; the overload for a literal `nil` as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public mutating func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?
  ) throws {
    try setObject(object, forKey: key, inCollection: collection)
  }
}

extension ReadWriteTransaction {
  /// Removes a key; the overload for a literal `nil` as object.
  public borrowing func setObject(_ nothing: Never?, forKey key: String, inCollection collection: String = "") throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Sets the object of a key and clears its metadata; the overload for a literal `nil` as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?
  ) throws {
    try setObject(object, forKey: key, inCollection: collection)
  }

  /// Removes a key; the overload for a literal `nil` as object.
  public borrowing func replaceObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Sets the object of a key and clears its metadata if its version is still `version`; the overload for a literal `nil` as
  /// metadata.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?,
    ifVersion version: CommitNumber
  ) throws {
    try setObject(object, forKey: key, inCollection: collection, ifVersion: version)
  }
}
