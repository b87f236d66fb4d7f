import Coffer

extension ReadWriteTransaction {
  // MARK: Items

  /// Writes an item and its metadata, replacing an existing one.
  ///
  /// Writing an item equal to the existing one changes nothing.
  ///
  /// - Throws: `CofferError.notEncodable`, with nothing changed; the errors of a sanitizer.
  public borrowing func write<Item: Persistable>(_ item: Item) throws {
    try setObject(
      item, forKey: Item.key(for: item.identifier), inCollection: Item.collection, withMetadata: item.metadata)
  }

  /// Writes several items and their metadata, all or none.
  ///
  /// - Throws: As `write(_:)`; none of them is written then, even if the error is caught inside the transaction.
  public borrowing func write<Item: Persistable>(_ items: some Sequence<Item>) throws {
    try inSavepoint {
      for item in items { try write(item) }
      return .commit
    }
  }

  /// Removes an item with its metadata, if it exists.
  public borrowing func remove<Item: Persistable>(_ item: Item) throws {
    try remove(Item.self, key: item.identifier)
  }

  /// Removes several items, all or none; missing ones are ignored.
  public borrowing func remove<Item: Persistable>(_ items: some Sequence<Item>) throws {
    try remove(Item.self, keys: items.map(\.identifier))
  }

  /// Removes the item of a key, if it exists.
  public borrowing func remove<Item: Persistable>(_ type: Item.Type, key: Item.Identifier) throws {
    try removeObject(forKey: Item.key(for: key), inCollection: Item.collection)
  }

  /// Removes the items of several keys, all or none; missing ones are ignored.
  public borrowing func remove<Item: Persistable>(_ type: Item.Type, keys: some Sequence<Item.Identifier>) throws {
    try removeObjects(forKeys: keys.map(Item.key(for:)), inCollection: Item.collection)
  }
}
