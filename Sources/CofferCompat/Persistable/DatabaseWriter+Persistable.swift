import Coffer

// Each method runs the operation of the same name in a write transaction of its own, and throws the errors of `write` and of
// that operation. Synchronous and asynchronous forms have the same parameters, so that a task always uses the asynchronous
// one. Operations without a completion form here can be used inside `asyncWrite(_:completion:)`.

extension DatabaseWriter {
  // MARK: Items

  /// Writes an item and its metadata, replacing an existing one.
  public func write(_ item: some Persistable) throws {
    try write { try $0.write(item) }
  }

  /// Writes several items and their metadata, all or none.
  public func write(_ items: some Sequence<some Persistable> & Sendable) throws {
    try write { try $0.write(items) }
  }

  /// Removes an item with its metadata, if it exists.
  public func remove(_ item: some Persistable) throws {
    try write { try $0.remove(item) }
  }

  /// Removes several items, all or none; missing ones are ignored.
  public func remove(_ items: some Sequence<some Persistable> & Sendable) throws {
    try write { try $0.remove(items) }
  }

  /// Removes the item of a key, if it exists.
  public func remove<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws {
    try write { try $0.remove(type, key: key) }
  }

  /// Removes the items of several keys, all or none; missing ones are ignored.
  public func remove<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws {
    try write { try $0.remove(type, keys: keys) }
  }

  // MARK: async, await

  /// Writes an item and its metadata, replacing an existing one.
  public func write(_ item: some Persistable) async throws {
    try await write { try $0.write(item) }
  }

  /// Writes several items and their metadata, all or none.
  public func write(_ items: some Sequence<some Persistable> & Sendable) async throws {
    try await write { try $0.write(items) }
  }

  /// Removes an item with its metadata, if it exists.
  public func remove(_ item: some Persistable) async throws {
    try await write { try $0.remove(item) }
  }

  /// Removes several items, all or none; missing ones are ignored.
  public func remove(_ items: some Sequence<some Persistable> & Sendable) async throws {
    try await write { try $0.remove(items) }
  }

  /// Removes the item of a key, if it exists.
  public func remove<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) async throws {
    try await write { try $0.remove(type, key: key) }
  }

  /// Removes the items of several keys, all or none; missing ones are ignored.
  public func remove<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws {
    try await write { try $0.remove(type, keys: keys) }
  }

  // MARK: Completion blocks

  /// Writes an item later, then runs `completion` on the writer, before any later write.
  public func asyncWrite(
    _ item: some Persistable, completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.write(item) }, completion: completion)
  }

  /// Writes several items later, all or none, then runs `completion` on the writer, before any later write.
  public func asyncWrite(
    _ items: some Sequence<some Persistable> & Sendable,
    completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.write(items) }, completion: completion)
  }

  /// Removes an item later, then runs `completion` on the writer, before any later write.
  public func asyncRemove(
    _ item: some Persistable, completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.remove(item) }, completion: completion)
  }

  /// Removes several items later, all or none, then runs `completion` on the writer, before any later write.
  public func asyncRemove(
    _ items: some Sequence<some Persistable> & Sendable,
    completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.remove(items) }, completion: completion)
  }
}
