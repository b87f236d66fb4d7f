extension ConnectionProxy {
  // MARK: Reading and writing in one step

  /// Atomically updates the object of a key from its current value, across all threads, connections and processes.
  ///
  /// ```swift
  /// let count = try settings.update("launches", as: Int.self) { ($0 ?? 0) + 1 }
  /// ```
  ///
  /// It runs a write transaction, which also commits pending changes; the new object is committed when this returns.
  /// Metadata, expiry and due date stay.
  ///
  /// - Parameters:
  ///   - durability: `.synced` waits for the disk too.
  ///   - body: Receives the object, or nil, and returns the new one, or nil to remove the key. It must not use the proxy or
  ///     its connections.
  /// - Returns: The new object.
  /// - Throws: The errors of `body`, with the key unchanged; the errors of a flush; `CofferError.notDecodable`,
  ///   `.notEncodable`, `.collectionNotAllowed`, `.readOnly`, `.closed`; `.nestedTransaction` inside a write transaction.
  @discardableResult
  public func update<Object: Codable>(
    _ key: String, inCollection collection: String = "", as type: Object.Type = Object.self,
    durability: Durability = .committed, _ body: (_ object: Object?) throws -> Object?
  ) throws -> Object? {
    try checkMayWrite(collection)
    return try pending.change(key, in: collection, durability) { try updated($0, key, in: collection, body) }
  }

  /// Atomically updates the object of a key, as the synchronous form does, without blocking a thread.
  ///
  /// ```swift
  /// let count = try await settings.update("launches", as: Int.self) { ($0 ?? 0) + 1 }
  /// ```
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled, with the key unchanged.
  @discardableResult
  public func update<Object: Codable & Sendable>(
    _ key: String, inCollection collection: String = "", as type: Object.Type = Object.self,
    durability: Durability = .committed, _ body: @escaping @Sendable (_ object: Object?) throws -> Object?
  ) async throws -> Object? {
    try checkMayWrite(collection)
    return try await pending.change(key, in: collection, durability) {
      try self.updated($0, key, in: collection, body)
    }
  }

  private func updated<Object: Codable>(
    _ item: HeldItem?, _ key: String, in collection: String, _ body: (_ object: Object?) throws -> Object?
  ) throws -> (HeldItem?, Object?) {
    guard let new = try body(item.map { try decode($0, key, in: collection) as Object }) else { return (nil, nil) }
    return (try item.with(new, key, in: collection, database.core), new)
  }

  /// Atomically sets the object of a key if it still equals the expected one, across all threads, connections and processes.
  ///
  /// ```swift
  /// guard try settings.compareAndSet("leader", expected: String?.none, new: myName) else { return followTheLeader() }
  /// ```
  ///
  /// It runs a write transaction, which also commits pending changes. The expected object is compared with the stored one,
  /// as a read returns it: only the new one passes through the sanitizers of ``CollectionRules``. Metadata, expiry and due
  /// date stay.
  ///
  /// - Parameters:
  ///   - expected: The expected object; nil if the key should be absent.
  ///   - new: The new object; nil to remove the key.
  ///   - durability: `.synced` waits for the disk too.
  /// - Returns: Whether the object was the expected one, and was replaced.
  /// - Throws: As `update(_:inCollection:as:durability:_:)`.
  public func compareAndSet<Object: Codable>(
    _ key: String, inCollection collection: String = "", expected: Object?, new: Object?,
    durability: Durability = .committed
  ) throws -> Bool {
    let exchange = try exchange(key, in: collection, expected, new)
    return try pending.change(key, in: collection, durability, exchange)
  }

  /// Atomically sets the object of a key if it still equals the expected one, as the synchronous form does, without blocking
  /// a thread.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled, with the key unchanged.
  nonisolated(nonsending) public func compareAndSet<Object: Codable>(
    _ key: String, inCollection collection: String = "", expected: Object?, new: Object?,
    durability: Durability = .committed
  ) async throws -> Bool {
    let exchange = try exchange(key, in: collection, expected, new)
    return try await pending.change(key, in: collection, durability, exchange)
  }

  /// Exchanges an item that has the expected object for one with the new object.
  private func exchange<Object: Codable>(
    _ key: String, in collection: String, _ expected: Object?, _ new: Object?
  ) throws -> @Sendable (HeldItem?) throws -> (HeldItem?, Bool) {
    try checkMayWrite(collection)
    let core = database.core
    // It stands for a stored value, which passed the sanitizers when it was set.
    let expected = try expected.map { HeldValue(try core.serialized(.object, $0, key, in: collection)) }
    let new = try new.map { try core.hold($0, key, in: collection) }
    return { item in
      guard try core.isSame(item?.object, expected, key, in: collection) else { return (item, false) }
      return (new.map { item?.with(object: $0) ?? HeldItem(object: $0, metadata: nil) }, true)
    }
  }
}

extension HeldItem? {
  /// The item with another object; a new one if there is none.
  func with(
    _ object: some Encodable, _ key: String, in collection: String, _ core: DatabaseCore
  ) throws -> HeldItem {
    let object = try core.hold(object, key, in: collection)
    return self?.with(object: object) ?? HeldItem(object: object, metadata: nil)
  }
}
