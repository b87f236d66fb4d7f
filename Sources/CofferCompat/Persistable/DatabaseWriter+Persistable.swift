import Coffer

// Each of these is a write transaction of its own around the operation of the same name; what they throw is what `write`
// and that operation throw. Synchronous and asynchronous forms take the same arguments, so that a task always means the
// asynchronous one. What has no completion form here is done inside `asyncWrite(_:completion:)`.

extension DatabaseWriter {
  // MARK: Items

  /// Writes an item and its metadata, in the place of what was there.
  public func write(_ item: some Persistable) throws {
    try write { try $0.write(item) }
  }

  /// Writes several items and their metadata, all or none.
  public func write(_ items: some Sequence<some Persistable> & Sendable) throws {
    try write { try $0.write(items) }
  }

  /// Removes an item with its metadata; an absent one changes nothing.
  public func remove(_ item: some Persistable) throws {
    try write { try $0.remove(item) }
  }

  /// Removes several items, all or none; absent ones change nothing.
  public func remove(_ items: some Sequence<some Persistable> & Sendable) throws {
    try write { try $0.remove(items) }
  }

  /// Removes the item for a key; an absent one changes nothing.
  public func remove<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws {
    try write { try $0.remove(type, key: key) }
  }

  /// Removes the items for several keys, all or none; absent ones change nothing.
  public func remove<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws {
    try write { try $0.remove(type, keys: keys) }
  }

  // MARK: async, await

  /// Writes an item and its metadata, in the place of what was there.
  public func write(_ item: some Persistable) async throws {
    try await write { try $0.write(item) }
  }

  /// Writes several items and their metadata, all or none.
  public func write(_ items: some Sequence<some Persistable> & Sendable) async throws {
    try await write { try $0.write(items) }
  }

  /// Removes an item with its metadata; an absent one changes nothing.
  public func remove(_ item: some Persistable) async throws {
    try await write { try $0.remove(item) }
  }

  /// Removes several items, all or none; absent ones change nothing.
  public func remove(_ items: some Sequence<some Persistable> & Sendable) async throws {
    try await write { try $0.remove(items) }
  }

  /// Removes the item for a key; an absent one changes nothing.
  public func remove<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) async throws {
    try await write { try $0.remove(type, key: key) }
  }

  /// Removes the items for several keys, all or none; absent ones change nothing.
  public func remove<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws {
    try await write { try $0.remove(type, keys: keys) }
  }

  // MARK: Completion blocks

  /// Writes an item later, and then runs `completion` on the writer, before any later write.
  public func asyncWrite(
    _ item: some Persistable, completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.write(item) }, completion: completion)
  }

  /// Writes several items later, all or none, and then runs `completion` on the writer, before any later write.
  public func asyncWrite(
    _ items: some Sequence<some Persistable> & Sendable,
    completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.write(items) }, completion: completion)
  }

  /// Removes an item later, and then runs `completion` on the writer, before any later write.
  public func asyncRemove(
    _ item: some Persistable, completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.remove(item) }, completion: completion)
  }

  /// Removes several items later, all or none, and then runs `completion` on the writer, before any later write.
  public func asyncRemove(
    _ items: some Sequence<some Persistable> & Sendable,
    completion: @escaping @Sendable (Connection, Result<Void, any Error>) -> Void
  ) {
    asyncWrite({ try $0.remove(items) }, completion: completion)
  }
}
