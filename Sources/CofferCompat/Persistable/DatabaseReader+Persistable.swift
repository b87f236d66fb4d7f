import Coffer
import Dispatch

// Each of these is a read transaction of its own around the operation of the same name; what they throw is what `read`
// and that operation throw. Synchronous and asynchronous forms take the same arguments, so that a task always means the
// asynchronous one. What has no completion form here is read inside `asyncRead(_:on:completion:)`.

extension DatabaseReader {
  // MARK: Items

  /// The item for a key, nil when there is none.
  public func read<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws -> Item? {
    try read { try $0.read(type, key: key) }
  }

  /// The item at an index, nil when there is none.
  public func read<Item: Persistable>(_ type: Item.Type, index: Index) throws -> Item? {
    try read { try $0.read(type, index: index) }
  }

  /// The items for those of `keys` that there are, in the order of `keys`.
  public func read<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws -> [Item] {
    try read { try $0.read(type, keys: keys) }
  }

  /// The items at those of `indexes` where there is one, in the order of `indexes`.
  public func read<Item: Persistable>(_ type: Item.Type, indexes: some Sequence<Index> & Sendable) throws -> [Item] {
    try read { try $0.read(type, indexes: indexes) }
  }

  /// All items of a type, in the order of their keys.
  public func readAll<Item: Persistable>(_ type: Item.Type) throws -> [Item] {
    try read { try $0.readAll(type) }
  }

  /// The items for those of `keys` that there are, and the other keys, both in the order of `keys`.
  public func filterExisting<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws -> (existing: [Item], missing: [Item.Identifier]) {
    try read { try $0.filterExisting(type, keys: keys) }
  }

  /// The metadata of the item for a key, nil when it has none, or there is no such item.
  public func readMetadata<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws -> Item.Metadata? {
    try read { try $0.readMetadata(type, key: key) }
  }

  /// The metadata for each of `keys`, nil where there is none.
  public func readMetadata<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws -> [Item.Metadata?] {
    try read { try $0.readMetadata(type, keys: keys) }
  }

  // MARK: async, await

  /// The item for a key, nil when there is none.
  public func read<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) async throws -> Item? {
    try await read { try $0.read(type, key: key) }
  }

  /// The item at an index, nil when there is none.
  public func read<Item: Persistable>(_ type: Item.Type, index: Index) async throws -> Item? {
    try await read { try $0.read(type, index: index) }
  }

  /// The items for those of `keys` that there are, in the order of `keys`.
  public func read<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws -> [Item] {
    try await read { try $0.read(type, keys: keys) }
  }

  /// The items at those of `indexes` where there is one, in the order of `indexes`.
  public func read<Item: Persistable>(
    _ type: Item.Type, indexes: some Sequence<Index> & Sendable
  ) async throws -> [Item] {
    try await read { try $0.read(type, indexes: indexes) }
  }

  /// All items of a type, in the order of their keys.
  public func readAll<Item: Persistable>(_ type: Item.Type) async throws -> [Item] {
    try await read { try $0.readAll(type) }
  }

  /// The items for those of `keys` that there are, and the other keys, both in the order of `keys`.
  public func filterExisting<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws -> (existing: [Item], missing: [Item.Identifier]) {
    try await read { try $0.filterExisting(type, keys: keys) }
  }

  /// The metadata of the item for a key, nil when it has none, or there is no such item.
  public func readMetadata<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) async throws -> Item.Metadata? {
    try await read { try $0.readMetadata(type, key: key) }
  }

  /// The metadata for each of `keys`, nil where there is none.
  public func readMetadata<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws -> [Item.Metadata?] {
    try await read { try $0.readMetadata(type, keys: keys) }
  }

  // MARK: Completion blocks

  /// Reads the item for a key later, and then runs `completion` on `queue`, or the reader's own.
  public func asyncRead<Item: Persistable>(
    _ type: Item.Type, key: Item.Identifier, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<Item?, any Error>) -> Void
  ) {
    asyncRead({ try $0.read(type, key: key) }, on: queue, completion: completion)
  }

  /// Reads the items for several keys later, and then runs `completion` on `queue`, or the reader's own.
  public func asyncRead<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<[Item], any Error>) -> Void
  ) {
    asyncRead({ try $0.read(type, keys: keys) }, on: queue, completion: completion)
  }

  /// Reads all items of a type later, and then runs `completion` on `queue`, or the reader's own.
  public func asyncReadAll<Item: Persistable>(
    _ type: Item.Type, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<[Item], any Error>) -> Void
  ) {
    asyncRead({ try $0.readAll(type) }, on: queue, completion: completion)
  }
}
