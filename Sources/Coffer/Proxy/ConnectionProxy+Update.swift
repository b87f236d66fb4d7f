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
    var result: Object?
    try pending.change(key, in: collection, durability) { item in
      let old = try item.map { try decode($0, key, in: collection) as Object }
      result = try body(old)
      guard let new = result else { return nil }
      let object = try database.core.hold(new, key, in: collection)
      return item?.with(object: object) ?? HeldItem(object: object, metadata: nil)
    }
    return result
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
    try checkMayWrite(collection)
    let core = database.core
    // It stands for a stored value, which passed the sanitizers when it was set.
    let expected = try expected.map { HeldValue(try core.serialized(.object, $0, key, in: collection)) }
    let new = try new.map { try core.hold($0, key, in: collection) }
    var isExpected = false
    try pending.change(key, in: collection, durability) { item in
      isExpected = try core.isSame(item?.object, expected, key, in: collection)
      guard isExpected else { return item }
      return new.map { item?.with(object: $0) ?? HeldItem(object: $0, metadata: nil) }
    }
    return isExpected
  }
}
