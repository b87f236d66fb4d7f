extension ConnectionProxy {
  // MARK: Reading and writing in one step

  /// Changes the object for a key by its present value, in one step that nothing comes between: no other thread,
  /// connection or process.
  ///
  /// ```swift
  /// let count = try settings.update("launches", as: Int.self) { ($0 ?? 0) + 1 }
  /// ```
  ///
  /// It is one write transaction, which also commits what is pending; the new object is committed when this returns. The
  /// metadata, the expiry and the due date stay.
  ///
  /// - Parameters:
  ///   - durability: `.synced` waits for the disk too.
  ///   - body: Gets the object, nil where there is none, and gives the new one, nil to remove the key. It must not use the
  ///     proxy or its connections.
  /// - Returns: The new object.
  /// - Throws: What `body` throws, with the key unchanged; what a flush throws; `CofferError.notDecodable`,
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

  /// Sets the object for a key if it is still the expected one, in one step that nothing comes between.
  ///
  /// ```swift
  /// guard try settings.compareAndSet("leader", expected: String?.none, new: myName) else { return followTheLeader() }
  /// ```
  ///
  /// It is one write transaction, which also commits what is pending. The expected object is compared with what is stored, as a
  /// read returns it: only the new one goes through the sanitizers of ``CollectionRules``. Metadata, expiry and due date stay.
  ///
  /// - Parameters:
  ///   - expected: nil for no object.
  ///   - new: nil to remove the key.
  ///   - durability: `.synced` waits for the disk too.
  /// - Returns: Whether the object was the expected one, and is now the new one.
  /// - Throws: As `update(_:inCollection:as:durability:_:)`.
  public func compareAndSet<Object: Codable>(
    _ key: String, inCollection collection: String = "", expected: Object?, new: Object?,
    durability: Durability = .committed
  ) throws -> Bool {
    try checkMayWrite(collection)
    let core = database.core
    // It stands for something stored, which the sanitizers saw when that was set.
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
