#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ConnectionProxy {
  // MARK: Setting

  /// Sets the object of a key, without metadata.
  ///
  /// nil removes the key.
  ///
  /// - Throws: `CofferError.notEncodable`, `.collectionNotAllowed`, `.readOnly` or `.closed`, `.vaultLocked` for a value in a
  ///   sealed collection while the vault is locked, and the errors of a sanitizer, with nothing changed. With `.committed`
  ///   and `.synced` also the errors of a flush; the change then stays pending. With these two also `.nestedTransaction`
  ///   inside a transaction of the connection used for flushes, with nothing changed.
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

  /// Sets the object and the metadata of a key.
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

  /// Sets the object of a key, with an expiry and without metadata.
  ///
  /// ```swift
  /// try settings.setObject(true, forKey: "maintenance", expires: Date(timeIntervalSinceNow: 7200))
  /// ```
  ///
  /// At `expires` the key is gone, for every reader in every process, whether it has been flushed or not; the change is
  /// reported soon after. See ``ReadWriteTransaction/setObject(_:forKey:inCollection:expires:due:)``.
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
    // The database outlives its proxy, so no reference need be counted.
    let change = try Borrowed(database.core).withObject(body)
    try pending.add(change, key, in: collection, durability: durability)
  }

  func checkMayWrite(_ collection: String) throws {
    guard state.hasWriteFilter.load(ordering: .acquiring) else { return }
    try database.core.faults?.checkSetting()
    guard writtenCollectionsFilter?.allows(collection) ?? true else {
      throw CofferError.collectionNotAllowed(collection: collection)
    }
  }

  // MARK: Replacing

  /// Replaces the object of a key, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing if the key is absent when this is flushed. nil removes the key.
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

  /// Replaces the metadata of a key, keeping its object, its expiry and its due date.
  ///
  /// Does nothing if the key is absent when this is flushed. nil clears the metadata.
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

  /// Clears the metadata of a key; the overload for a literal `nil` as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func replaceMetadata(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try change(key, in: collection, durability) { _ in .replacedByNoMetadata }
  }

  // MARK: Removing

  /// Removes a key; does nothing if it is absent.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObject(
    forKey key: String, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try change(key, in: collection, durability) { _ in .removed }
  }

  /// Removes several keys in one batch; absent keys are ignored.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObjects(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try checkMayWrite(collection)
    let changes = keys.map { PendingChanges.KeyChange(mutation: .removed, key: $0, collection: collection) }
    try pending.add(changes, durability: durability)
  }

  /// Removes all items of a collection, pending and committed.
  ///
  /// They disappear from the proxy at once; the next flush clears the collection. Items set after the call stay, and are
  /// visible throughout.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeAllObjects(inCollection collection: String, durability: Durability = .asynchronous) throws {
    try checkMayWrite(collection)
    try pending.clear(collection, durability: durability)
  }

  // MARK: Several at once

  /// Makes several changes in one step: they become visible together, form one event, and are written in one transaction.
  ///
  /// ```swift
  /// try settings.performBatch { batch in
  ///   try batch.setObject("dark", forKey: "theme", inCollection: "ui")
  ///   try batch.removeObject(forKey: "accent", inCollection: "ui")
  /// }
  /// ```
  ///
  /// - Throws: The errors of `body`, with nothing changed; otherwise as `setObject(_:forKey:inCollection:durability:)`.
  public func performBatch(durability: Durability = .asynchronous, _ body: (inout ChangeBatch) throws -> Void) throws {
    var batch = ChangeBatch(proxy: self)
    try body(&batch)
    try pending.add(batch.changes, durability: durability)
  }

  // MARK: Discarding

  /// Discards the changes of a key that no flush has taken yet; the committed value, or one just being committed, shows
  /// again.
  ///
  /// - Throws: `CofferError.closed`.
  public func discardPendingChanges(forKey key: String, inCollection collection: String = "") throws {
    try pending.reset(key, in: collection)
  }

  /// Discards all changes that no flush has taken yet; committed values, or those just being committed, show again.
  ///
  /// - Throws: `CofferError.closed`.
  public func discardPendingChanges() throws {
    try pending.reset()
  }
}

extension DatabaseCore {
  /// Whether a stored object equals the expected one; nil means absent.
  func isSame(_ held: HeldValue?, _ expected: HeldValue?, _ key: String, in collection: String) throws -> Bool {
    guard case .stored(let stored)? = held, stored.kind == .sealed, let expected else { return held == expected }
    return try HeldValue(opened(.object, stored, key, in: collection)) == expected
  }
}
