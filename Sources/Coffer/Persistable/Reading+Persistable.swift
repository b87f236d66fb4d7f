extension Reading where Self: ~Copyable {
  // MARK: Items

  /// The item for a key, nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable` when what is stored is no `Item`.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, key: String) throws -> Item? {
    try object(forKey: key, inCollection: Item.collection)
  }

  /// The item at an index, nil when there is none.
  ///
  /// - Throws: As `read(_:key:)`; `CofferError.unsupported` for an index of another collection.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, index: Index) throws -> Item? {
    try read(type, key: Item.key(at: index))
  }

  /// The items for those of `keys` that there are, in the order of `keys`.
  ///
  /// - Throws: As `read(_:key:)`.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, keys: some Sequence<String>) throws -> [Item] {
    try filterExisting(type, keys: keys).existing
  }

  /// The items at those of `indexes` where there is one, in the order of `indexes`.
  ///
  /// - Throws: As `read(_:index:)`.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, indexes: some Sequence<Index>) throws -> [Item] {
    try read(type, keys: indexes.map(Item.key(at:)))
  }

  /// All items of a type, in the order of their keys.
  ///
  /// - Throws: As `read(_:key:)`.
  public borrowing func readAll<Item: Persistable>(_ type: Item.Type) throws -> [Item] {
    var items: [Item] = []
    try enumerateKeysAndObjects(inCollection: Item.collection, as: type) { _, item, _ in items.append(item) }
    return items
  }

  /// The items for those of `keys` that there are, and the other keys, both in the order of `keys`.
  ///
  /// ```swift
  /// let (known, unknown) = try transaction.filterExisting(Photo.self, keys: wanted)
  /// ```
  ///
  /// - Throws: As `read(_:key:)`.
  public borrowing func filterExisting<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<String>
  ) throws -> (existing: [Item], missing: [String]) {
    let core = session.core
    var (existing, missing): ([Item], [String]) = ([], [])
    for (key, stored) in try stored(keys, Item.collection) {
      if let stored {
        existing.append(try core.decode(stored.object, as: type, key, in: Item.collection))
      } else {
        missing.append(key)
      }
    }
    return (existing, missing)
  }

  // MARK: Metadata of items

  /// The metadata of the item for a key, nil when it has none, or there is no such item.
  ///
  /// - Throws: `CofferError.notDecodable` when what is stored is no `Item.Metadata`.
  public borrowing func readMetadata<Item: Persistable>(_ type: Item.Type, key: String) throws -> Item.Metadata? {
    try metadata(forKey: key, inCollection: Item.collection)
  }

  /// The metadata for each of `keys`, nil where there is none.
  ///
  /// - Throws: As `readMetadata(_:key:)`.
  public borrowing func readMetadata<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<String>
  ) throws -> [Item.Metadata?] {
    let core = session.core
    return try stored(keys, Item.collection).map { key, stored in
      try core.metadata(stored?.metadata, as: Item.Metadata.self, key, in: Item.collection)
    }
  }

  /// What is stored for each key: in one snapshot, also where each operation is a transaction of its own.
  private borrowing func stored(
    _ keys: some Sequence<String>, _ collection: String
  ) throws -> [(key: String, item: HeldItem?)] {
    let session = session
    return try session.reading { try keys.map { ($0, try session.item($0, in: collection)) } }
  }
}
