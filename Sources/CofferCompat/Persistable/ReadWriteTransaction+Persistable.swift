import Coffer

extension ReadWriteTransaction {
  // MARK: Items

  /// Writes an item and its metadata, in the place of what was there.
  ///
  /// An item equal to the one that is there changes nothing.
  ///
  /// - Throws: `CofferError.notEncodable`, with nothing changed; what a sanitizer throws.
  public borrowing func write<Item: Persistable>(_ item: Item) throws {
    try setObject(
      item, forKey: Item.key(for: item.identifier), inCollection: Item.collection, withMetadata: item.metadata)
  }

  /// Writes several items and their metadata, all or none.
  ///
  /// - Throws: As `write(_:)`, also when the error is caught inside the transaction with none of them written.
  public borrowing func write<Item: Persistable>(_ items: some Sequence<Item>) throws {
    try inSavepoint {
      for item in items { try write(item) }
      return .commit
    }
  }

  /// Removes an item with its metadata; an absent one changes nothing.
  public borrowing func remove<Item: Persistable>(_ item: Item) throws {
    try remove(Item.self, key: item.identifier)
  }

  /// Removes several items, all or none; absent ones change nothing.
  public borrowing func remove<Item: Persistable>(_ items: some Sequence<Item>) throws {
    try remove(Item.self, keys: items.map(\.identifier))
  }

  /// Removes the item for a key; an absent one changes nothing.
  public borrowing func remove<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws {
    try removeObject(forKey: Item.key(for: key), inCollection: Item.collection)
  }

  /// Removes the items for several keys, all or none; absent ones change nothing.
  public borrowing func remove<Item: Persistable>(_ type: Item.Type, keys: some Sequence<Item.Identifier>) throws {
    try removeObjects(forKeys: keys.map(Item.key(for:)), inCollection: Item.collection)
  }
}
