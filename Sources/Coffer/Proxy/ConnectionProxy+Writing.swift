#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ConnectionProxy {
  // MARK: Setting

  /// Sets the object for a key, without metadata.
  ///
  /// nil removes the key.
  ///
  /// - Throws: `CofferError.notEncodable`, `.collectionNotAllowed`, `.readOnly` or `.closed`, `.locked` for a value in a sealed
  ///   collection while the vault is locked, and what a sanitizer throws, with nothing changed. With `.committed` and `.synced` also what a flush throws; the change is then
  ///   pending. With these two `.nestedTransaction` inside a transaction of `readWriteConnection`, with nothing changed.
  @inlinable
  public func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection, durability: durability) }
    try PlainType.match(
      Object.self, int: set(PlainType.same(object, as: Int.self), key, collection, durability),
      bool: set(PlainType.same(object, as: Bool.self), key, collection, durability),
      double: set(PlainType.same(object, as: Double.self), key, collection, durability),
      string: set(PlainType.same(object, as: String.self), key, collection, durability),
      otherwise: setEncoded(object, key, collection, durability))
  }

  @usableFromInline
  func set(_ object: Int, _ key: String, _ collection: String, _ durability: Durability) throws {
    try setEncoded(object, key, collection, durability)
  }

  @usableFromInline
  func set(_ object: Bool, _ key: String, _ collection: String, _ durability: Durability) throws {
    try setEncoded(object, key, collection, durability)
  }

  @usableFromInline
  func set(_ object: Double, _ key: String, _ collection: String, _ durability: Durability) throws {
    try setEncoded(object, key, collection, durability)
  }

  @usableFromInline
  func set(_ object: String, _ key: String, _ collection: String, _ durability: Durability) throws {
    try setEncoded(object, key, collection, durability)
  }

  @usableFromInline
  func setEncoded<Object: Encodable>(
    _ object: Object, _ key: String, _ collection: String, _ durability: Durability
  ) throws {
    try change(key, in: collection, durability) { core in
      try core.setting(object, key, in: collection)
    }
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
    guard let object else { return try removeObject(forKey: key, inCollection: collection, durability: durability) }
    try change(key, in: collection, durability) { core in
      try core.setting(object, metadata: metadata, key, in: collection)
    }
  }

  /// Sets the object for a key and clears its metadata: what a literal `nil` means as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?,
    durability: Durability = .asynchronous
  ) throws {
    try setObject(object, forKey: key, inCollection: collection, durability: durability)
  }

  /// Sets the object for a key for a time, without metadata.
  ///
  /// ```swift
  /// try settings.setObject(true, forKey: "maintenance", expires: Date(timeIntervalSinceNow: 7200))
  /// ```
  ///
  /// From `expires` on the key is gone, for every reader in every process at once, whether it has been flushed or not; the
  /// change is announced soon after. See ``ReadWriteTransaction/setObject(_:forKey:inCollection:expires:due:)``.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "", expires: Date?, due: Date? = nil,
    durability: Durability = .asynchronous
  ) throws {
    try setObject(
      object, forKey: key, inCollection: collection, dates: ItemDates(expires: expires, due: due),
      durability: durability)
  }

  func setObject<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String, dates: ItemDates, durability: Durability
  ) throws {
    try change(key, in: collection, durability) { core in
      try core.setting(object, dates: dates, key, in: collection)
    }
  }

  @inline(__always)
  private func change(
    _ key: String, in collection: String, _ durability: Durability, _ body: (DatabaseCore) throws -> Mutation
  ) throws {
    try checkMayWrite(collection)
    // The database lives as long as its proxy: no reference is counted.
    let change = try Borrowed(database.core).withObject(body)
    try pending.add(change, key, in: collection, durability: durability)
  }

  func checkMayWrite(_ collection: String) throws {
    guard state.hasWriteFilter.load(ordering: .acquiring) else { return }
    guard writtenCollectionsFilter?.allows(collection) ?? true else {
      throw CofferError.collectionNotAllowed(collection: collection)
    }
  }

  // MARK: Replacing

  /// Replaces the object for a key, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing where there is no such key when it is flushed. nil removes the key.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection, durability: durability) }
    try change(key, in: collection, durability) { core in
      try core.replacing(object: object, key, in: collection)
    }
  }

  /// Removes a key: what a literal `nil` means as an object.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try removeObject(forKey: key, inCollection: collection, durability: durability)
  }

  /// Replaces the metadata for a key, keeping its object, its expiry and its due date.
  ///
  /// Does nothing where there is no such key when it is flushed. nil clears the metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceMetadata<Metadata: Encodable>(
    _ metadata: Metadata?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try change(key, in: collection, durability) { core in
      try core.replacing(metadata: metadata, key, in: collection)
    }
  }

  /// Clears the metadata of a key: what a literal `nil` means as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceMetadata(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try change(key, in: collection, durability) { _ in .replacedByNoMetadata }
  }

  // MARK: Removing

  /// Removes a key; an absent one changes nothing.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObject(
    forKey key: String, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try change(key, in: collection, durability) { _ in .removed }
  }

  /// Removes several keys in one batch; absent ones change nothing.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObjects(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try checkMayWrite(collection)
    let changes = keys.map { PendingChanges.KeyChange(mutation: .removed, key: $0, collection: collection) }
    try pending.add(changes, durability: durability)
  }

  /// Removes all that is in a collection, pending and committed.
  ///
  /// At once nothing of it is visible through the proxy any more; the next flush clears it. What is set after the call
  /// stays, and is visible throughout.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeAll(inCollection collection: String, durability: Durability = .asynchronous) throws {
    try checkMayWrite(collection)
    try pending.clear(collection, durability: durability)
  }

  // MARK: Several at once

  /// Makes several changes in one step: they show together, are announced in one event, and are written in one transaction.
  ///
  /// ```swift
  /// try settings.performBatch { batch in
  ///   try batch.setObject("dark", forKey: "theme", inCollection: "ui")
  ///   try batch.removeObject(forKey: "accent", inCollection: "ui")
  /// }
  /// ```
  ///
  /// - Throws: What `body` throws, with nothing changed; otherwise as
  ///   `setObject(_:forKey:inCollection:durability:)`.
  public func performBatch(durability: Durability = .asynchronous, _ body: (inout ChangeBatch) throws -> Void) throws {
    var batch = ChangeBatch(proxy: self)
    try body(&batch)
    try pending.add(batch.changes, durability: durability)
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

extension DatabaseCore {
  /// Whether a held object is the one that is expected, nil standing for none.
  func isSame(_ held: HeldValue?, _ expected: HeldValue?, _ key: String, in collection: String) throws -> Bool {
    guard case .stored(let stored)? = held, stored.kind == .sealed, let expected else { return held == expected }
    return try HeldValue(opened(.object, stored, key, in: collection)) == expected
  }
}
