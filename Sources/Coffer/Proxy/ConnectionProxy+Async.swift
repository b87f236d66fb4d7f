#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Asynchronous code gets these forms if it states a durability: they wait for the disk without blocking a thread that runs
// tasks. Without one, a change is in memory at once, and there is nothing to wait for.

extension ConnectionProxy {
  // MARK: Setting without blocking

  /// Sets the object of a key, as the synchronous form does, and waits for its flush without blocking a thread.
  ///
  /// ```swift
  /// try await settings.setObject("dark", forKey: "theme", durability: .synced)
  /// ```
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call, with nothing changed.
  ///   Afterwards, cancellation has no effect.
  nonisolated(nonsending) public func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", durability: Durability
  ) async throws {
    try await change(key, in: collection, durability) { core in
      try object.map { try core.setting($0, key, in: collection) } ?? .removed
    }
  }

  /// Sets the object and the metadata of a key without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?,
    durability: Durability
  ) async throws {
    try await change(key, in: collection, durability) { core in
      try object.map { try core.setting($0, metadata: metadata, key, in: collection) } ?? .removed
    }
  }

  /// Sets the object of a key, with an expiry, without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func setObject<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "", expires: Date?, due: Date? = nil,
    durability: Durability
  ) async throws {
    try await change(key, in: collection, durability) { core in
      try core.setting(object, dates: ItemDates(expires: expires, due: due), key, in: collection)
    }
  }

  /// Replaces the object of a key, keeping its metadata and dates, without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func replaceObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", durability: Durability
  ) async throws {
    try await change(key, in: collection, durability) { core in
      try object.map { try core.replacing(object: $0, key, in: collection) } ?? .removed
    }
  }

  /// Replaces the metadata of a key, keeping its object and dates, without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func replaceMetadata<Metadata: Encodable>(
    _ metadata: Metadata?, forKey key: String, inCollection collection: String = "", durability: Durability
  ) async throws {
    try await change(key, in: collection, durability) { core in
      try core.replacing(metadata: metadata, key, in: collection)
    }
  }

  nonisolated(nonsending) func change(
    _ key: String, in collection: String, _ durability: Durability, _ body: (DatabaseCore) throws -> Mutation
  ) async throws {
    try checkMayWrite(collection)
    let change = PendingChanges.KeyChange(mutation: try body(database.core), key: key, collection: collection)
    try await pending.add([change], durability: durability)
  }

  // MARK: Removing without blocking

  /// Removes a key without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func removeObject(
    forKey key: String, inCollection collection: String = "", durability: Durability
  ) async throws {
    try await change(key, in: collection, durability) { _ in .removed }
  }

  /// Removes several keys in one batch, without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func removeObjects(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", durability: Durability
  ) async throws {
    try checkMayWrite(collection)
    let changes = keys.map { PendingChanges.KeyChange(mutation: .removed, key: $0, collection: collection) }
    try await pending.add(changes, durability: durability)
  }

  /// Removes all items of a collection without blocking a thread.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func removeAllObjects(
    inCollection collection: String, durability: Durability
  ) async throws {
    try checkMayWrite(collection)
    try await pending.clear(collection, durability: durability)
  }

  // MARK: Several at once, without blocking

  /// Makes several changes in one step, as the synchronous form does, and waits for their flush without blocking a thread.
  ///
  /// ```swift
  /// try await settings.performBatch(durability: .committed) { batch in
  ///   try batch.setObject("dark", forKey: "theme", inCollection: "ui")
  ///   try batch.removeObject(forKey: "accent", inCollection: "ui")
  /// }
  /// ```
  ///
  /// - Throws: The errors of `body`, with nothing changed; otherwise as
  ///   `setObject(_:forKey:inCollection:durability:)`.
  nonisolated(nonsending) public func performBatch(
    durability: Durability, _ body: (inout ChangeBatch) throws -> Void
  ) async throws {
    var batch = ChangeBatch(proxy: self)
    try body(&batch)
    try await pending.add(batch.changes, durability: durability)
  }

  // MARK: Closing without blocking

  /// Flushes and closes the proxy, as the synchronous form does, without blocking a thread; a cancelled task does so, too.
  ///
  /// - Throws: As the synchronous form.
  public func close() async throws {
    try await withoutBlocking(isCancellable: false) { try self.close() }
  }
}
