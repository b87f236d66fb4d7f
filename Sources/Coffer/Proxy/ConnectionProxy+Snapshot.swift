extension ConnectionProxy {
  /// The contents of some collections at one moment; see ``ConnectionProxy/snapshot(ofCollections:)``.
  public struct Snapshot: Sendable {
    /// An item as it was at the moment of the snapshot.
    public struct Item: Sendable {
      /// The collection of the key.
      public let collection: String
      /// The key.
      public let key: String
      fileprivate let held: Result<HeldItem, any Error>
      fileprivate let core: DatabaseCore

      /// The object.
      ///
      /// - Throws: `CofferError.notDecodable` when it is of another type, `.vaultLocked` when it is sealed and the vault is
      ///   locked; `.damaged` or `.newerFormat` when it is unreadable.
      public func object<Object: Decodable>(as type: Object.Type = Object.self) throws -> Object {
        try core.decode(held.get().object, as: type, key, in: collection)
      }

      /// The object as a ``Value``, and whether it is sealed in the store.
      package func openedValue() throws -> (value: Value, isSealed: Bool) {
        try core.openedValue(held.get(), key, in: collection)
      }

      /// The metadata, or nil.
      ///
      /// - Throws: As ``object(as:)``.
      public func metadata<Metadata: Decodable>(as type: Metadata.Type = Metadata.self) throws -> Metadata? {
        try core.metadata(held.get().metadata, as: type, key, in: collection)
      }
    }

    /// All items, in the order of the UTF-8 bytes of their collections and keys.
    public let items: [Item]

    /// The item of a key, or nil.
    public func item(forKey key: String, inCollection collection: String = "") -> Item? {
      let place = (ByteString(collection), ByteString(key))
      var (start, end) = (items.startIndex, items.endIndex)
      while start < end {
        let middle = start + (end - start) / 2
        if (ByteString(items[middle].collection), ByteString(items[middle].key)) < place {
          start = middle + 1
        } else {
          end = middle
        }
      }
      guard start < items.endIndex, (ByteString(items[start].collection), ByteString(items[start].key)) == place
      else { return nil }
      return items[start]
    }
  }

  /// The contents of several collections, including pending changes, as of one moment.
  ///
  /// ```swift
  /// for item in try settings.snapshot(ofCollections: ["ui", "network"]).items {
  ///   do {
  ///     print(item.collection, item.key, try item.object(as: Value.self))
  ///   } catch {
  ///     print(item.collection, item.key, "cannot be read: \(error)")
  ///   }
  /// }
  /// ```
  ///
  /// Changes made together, in a batch or a transaction of any process, are included together or not at all. An unreadable
  /// item does not prevent others from being read: it throws when its object is accessed. Values of sealed collections stay
  /// sealed until they are accessed.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func snapshot(ofCollections collections: [String]) throws -> Snapshot {
    let names = Set(collections.map { ByteString($0) }).sorted().map(\.string)
    for name in names { state.askFetchFilter(name) }
    let items = try state.visibleItems(of: names, .all)
    return Snapshot(
      items: zip(names, items).flatMap { name, items in
        items.map { Snapshot.Item(collection: name, key: $0.key, held: $0.item, core: database.core) }
      })
  }
}
