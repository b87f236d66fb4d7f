import Coffer
import Dispatch

// Each method runs the operation of the same name in a read transaction of its own, and throws the errors of `read` and of
// that operation. Synchronous and asynchronous forms have the same parameters, so that a task always uses the asynchronous
// one. Operations without a completion form here can be used inside `asyncRead(_:on:completion:)`.

extension DatabaseReader {
  // MARK: Items

  /// The item of a key, or nil.
  public func read<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws -> Item? {
    try read { try $0.read(type, key: key) }
  }

  /// The item at a reference, or nil.
  public func read<Item: Persistable>(_ type: Item.Type, reference: ItemReference) throws -> Item? {
    try read { try $0.read(type, reference: reference) }
  }

  /// The items of those `keys` that exist, in the order of `keys`.
  public func read<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws -> [Item] {
    try read { try $0.read(type, keys: keys) }
  }

  /// The items at those `references` that exist, in the order of `references`.
  public func read<Item: Persistable>(_ type: Item.Type, references: some Sequence<ItemReference> & Sendable) throws
    -> [Item]
  {
    try read { try $0.read(type, references: references) }
  }

  /// All items of a type, in the order of their keys.
  public func readAll<Item: Persistable>(_ type: Item.Type) throws -> [Item] {
    try read { try $0.readAll(type) }
  }

  /// The items of those `keys` that exist, and the other keys, both in the order of `keys`.
  public func filterExisting<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws -> (existing: [Item], missing: [Item.Identifier]) {
    try read { try $0.filterExisting(type, keys: keys) }
  }

  /// The metadata of the item of a key; nil if it has none, or does not exist.
  public func readMetadata<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws -> Item.Metadata? {
    try read { try $0.readMetadata(type, key: key) }
  }

  /// The metadata of each of `keys`, or nil.
  public func readMetadata<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) throws -> [Item.Metadata?] {
    try read { try $0.readMetadata(type, keys: keys) }
  }

  // MARK: async, await

  /// The item of a key, or nil.
  public func read<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) async throws -> Item? {
    try await read { try $0.read(type, key: key) }
  }

  /// The item at a reference, or nil.
  public func read<Item: Persistable>(_ type: Item.Type, reference: ItemReference) async throws -> Item? {
    try await read { try $0.read(type, reference: reference) }
  }

  /// The items of those `keys` that exist, in the order of `keys`.
  public func read<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws -> [Item] {
    try await read { try $0.read(type, keys: keys) }
  }

  /// The items at those `references` that exist, in the order of `references`.
  public func read<Item: Persistable>(
    _ type: Item.Type, references: some Sequence<ItemReference> & Sendable
  ) async throws -> [Item] {
    try await read { try $0.read(type, references: references) }
  }

  /// All items of a type, in the order of their keys.
  public func readAll<Item: Persistable>(_ type: Item.Type) async throws -> [Item] {
    try await read { try $0.readAll(type) }
  }

  /// The items of those `keys` that exist, and the other keys, both in the order of `keys`.
  public func filterExisting<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws -> (existing: [Item], missing: [Item.Identifier]) {
    try await read { try $0.filterExisting(type, keys: keys) }
  }

  /// The metadata of the item of a key; nil if it has none, or does not exist.
  public func readMetadata<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) async throws -> Item.Metadata? {
    try await read { try $0.readMetadata(type, key: key) }
  }

  /// The metadata of each of `keys`, or nil.
  public func readMetadata<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable
  ) async throws -> [Item.Metadata?] {
    try await read { try $0.readMetadata(type, keys: keys) }
  }

  // MARK: Completion blocks

  /// Reads the item of a key later, then runs `completion` on `queue`, or on the reader's own.
  public func asyncRead<Item: Persistable>(
    _ type: Item.Type, key: Item.Identifier, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<Item?, any Error>) -> Void
  ) {
    asyncRead({ try $0.read(type, key: key) }, on: queue, completion: completion)
  }

  /// Reads the items of several keys later, then runs `completion` on `queue`, or on the reader's own.
  public func asyncRead<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier> & Sendable, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<[Item], any Error>) -> Void
  ) {
    asyncRead({ try $0.read(type, keys: keys) }, on: queue, completion: completion)
  }

  /// Reads all items of a type later, then runs `completion` on `queue`, or on the reader's own.
  public func asyncReadAll<Item: Persistable>(
    _ type: Item.Type, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<[Item], any Error>) -> Void
  ) {
    asyncRead({ try $0.readAll(type) }, on: queue, completion: completion)
  }
}
