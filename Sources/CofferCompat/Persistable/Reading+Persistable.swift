import Coffer

extension Reading where Self: ~Copyable {
  // MARK: Items

  /// The item of a key, with its metadata, or nil.
  ///
  /// - Throws: `CofferError.notDecodable` when the stored object is not an `Item`, or its metadata is not an
  ///   `Item.Metadata`.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws -> Item? {
    try item(type, Item.key(for: key))
  }

  /// The item at a reference, or nil.
  ///
  /// - Throws: As `read(_:key:)`; `CofferError.unsupported` for a reference of another collection.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, reference: ItemReference) throws -> Item? {
    try item(type, Item.key(at: reference))
  }

  /// The items of those `keys` that exist, in the order of `keys`.
  ///
  /// - Throws: As `read(_:key:)`.
  public borrowing func read<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier>
  ) throws -> [Item] {
    try filterExisting(type, keys: keys).existing
  }

  /// The items at those `references` that exist, in the order of `references`.
  ///
  /// - Throws: As `read(_:reference:)`.
  public borrowing func read<Item: Persistable>(_ type: Item.Type, references: some Sequence<ItemReference>) throws
    -> [Item]
  {
    let session = session
    return try session.reading {
      try references.compactMap { reference in
        let key = try Item.key(at: reference)
        return try session.item(key, in: Item.collection).map { try session.core.item($0, key) }
      }
    }
  }

  /// All items of a type, in the order of their keys.
  ///
  /// - Throws: As `read(_:key:)`.
  public borrowing func readAll<Item: Persistable>(_ type: Item.Type) throws -> [Item] {
    var items: [Item] = []
    let core = session.core
    try session.enumerate(Item.collection, .all, .rows) { _, cursor in
      items.append(try core.item(try cursor.item(), cursor.key))
      return true
    }
    return items
  }

  /// The items of those `keys` that exist, and the other keys, both in the order of `keys`.
  ///
  /// ```swift
  /// let (known, unknown) = try transaction.filterExisting(Photo.self, keys: wanted)
  /// ```
  ///
  /// - Throws: As `read(_:key:)`.
  public borrowing func filterExisting<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier>
  ) throws -> (existing: [Item], missing: [Item.Identifier]) {
    let session = session
    var (existing, missing): ([Item], [Item.Identifier]) = ([], [])
    // In one snapshot, even if each operation is a separate transaction.
    try session.reading {
      for identifier in keys {
        let key = Item.key(for: identifier)
        if let stored = try session.item(key, in: Item.collection) {
          existing.append(try session.core.item(stored, key))
        } else {
          missing.append(identifier)
        }
      }
    }
    return (existing, missing)
  }

  private borrowing func item<Item: Persistable>(_ type: Item.Type, _ key: String) throws -> Item? {
    let core = session.core
    return try session.item(key, in: Item.collection).map { try core.item($0, key) }
  }

  // MARK: Metadata of items

  /// The metadata of the item of a key; nil if it has none, or does not exist.
  ///
  /// - Throws: `CofferError.notDecodable` when the stored metadata is not an `Item.Metadata`.
  public borrowing func readMetadata<Item: Persistable>(
    _ type: Item.Type, key: Item.Identifier
  ) throws -> Item.Metadata? {
    try metadata(forKey: Item.key(for: key), inCollection: Item.collection)
  }

  /// The metadata of each of `keys`, or nil.
  ///
  /// - Throws: As `readMetadata(_:key:)`.
  public borrowing func readMetadata<Item: Persistable>(
    _ type: Item.Type, keys: some Sequence<Item.Identifier>
  ) throws -> [Item.Metadata?] {
    let session = session
    return try session.reading {
      try keys.map { identifier in
        let key = Item.key(for: identifier)
        let stored = try session.item(key, in: Item.collection)?.metadata
        return try session.core.metadata(stored, as: Item.Metadata.self, key, in: Item.collection)
      }
    }
  }
}

extension DatabaseCore {
  /// An item with its metadata.
  fileprivate func item<Item: Persistable>(_ stored: HeldItem, _ key: String) throws -> Item {
    var item = try decode(stored.object, as: Item.self, key, in: Item.collection)
    // If the type has no metadata, what is stored there belongs to another program.
    if Item.Metadata.self != Never.self {
      item.metadata = try metadata(stored.metadata, as: Item.Metadata.self, key, in: Item.collection)
    }
    return item
  }
}
