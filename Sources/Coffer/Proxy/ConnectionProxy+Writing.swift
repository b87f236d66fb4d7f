extension ConnectionProxy {
  // MARK: Setting

  /// Sets the object for a key, without metadata.
  ///
  /// nil removes the key.
  ///
  /// - Throws: `CofferError.notEncodable`, `.readOnly` or `.closed`, with nothing changed. With `.committed` and `.synced` also what a
  ///   flush throws; the change is then pending. With these two `.nestedTransaction` inside a transaction of
  ///   `readWriteConnection`, with nothing changed.
  public func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try set(object, metadata: nil, key, collection, durability)
  }

  /// Removes a key: what a literal `nil` means as an object.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try removeObject(forKey: key, inCollection: collection, durability: durability)
  }

  /// Sets the object and the metadata for a key.
  ///
  /// A nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?,
    durability: Durability = .asynchronous
  ) throws {
    let metadata = try metadata.map { try database.core.encode(.metadata, $0, key, in: collection) }
    try set(object, metadata: metadata, key, collection, durability)
  }

  private func set(
    _ object: (some Encodable)?, metadata: StoredValue?, _ key: String, _ collection: String, _ durability: Durability
  ) throws {
    let change = try object.map { object in
      let object = try database.core.encode(.object, object, key, in: collection)
      return PendingChange.set(StoredItem(object: object, metadata: metadata))
    }
    try pending.add(change ?? .removed, [key], in: collection, durability: durability)
  }

  // MARK: Replacing

  /// Replaces the object for a key, keeping its metadata.
  ///
  /// Does nothing where there is no such key when it is flushed. nil removes the key.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    let change = try object.map { object in
      PendingChange.replaced(.init(object: try database.core.encode(.object, object, key, in: collection)))
    }
    try pending.add(change ?? .removed, [key], in: collection, durability: durability)
  }

  /// Replaces the metadata for a key, keeping its object.
  ///
  /// Does nothing where there is no such key when it is flushed. nil clears the metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceMetadata<Metadata: Encodable>(
    _ metadata: Metadata?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    let metadata = try metadata.map { try database.core.encode(.metadata, $0, key, in: collection) }
    try pending.add(.replaced(.init(metadata: .some(metadata))), [key], in: collection, durability: durability)
  }

  /// Clears the metadata of a key: what a literal `nil` means as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceMetadata(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try pending.add(.replaced(.init(metadata: .some(nil))), [key], in: collection, durability: durability)
  }

  // MARK: Removing

  /// Removes a key; an absent one changes nothing.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObject(
    forKey key: String, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try removeObjects(forKeys: [key], inCollection: collection, durability: durability)
  }

  /// Removes several keys in one batch; absent ones change nothing.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObjects(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try pending.add(.removed, keys, in: collection, durability: durability)
  }

  // MARK: Resetting

  /// Drops the changes of a key that no flush has taken yet; what is committed, or just being committed, shows again.
  ///
  /// - Throws: `CofferError.closed`.
  public func resetObject(forKey key: String, inCollection collection: String = "") throws {
    try pending.reset(key, in: collection)
  }

  /// Drops all changes that no flush has taken yet; what is committed, or just being committed, shows again.
  ///
  /// - Throws: `CofferError.closed`.
  public func reset() throws {
    try pending.reset()
  }
}
