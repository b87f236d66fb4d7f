import Coffer

/// Where an item is: its collection, and its key there.
///
/// An item can hold the index of another to refer to it:
///
/// ```swift
/// struct Album: Persistable {
///   static let collection = "albums"
///   let identifier: String
///   var photos: [Index]
/// }
///
/// let photos = try transaction.read(Photo.self, indexes: album.photos)
/// ```
public struct Index: Hashable, Codable, Sendable {
  /// The collection.
  public let collection: String
  /// The key in the collection.
  public let key: String

  /// The place of a key in a collection.
  public init(collection: String, key: String) {
    self.collection = collection
    self.key = key
  }

  /// Whether two are equal by the UTF-8 bytes of their names, as the store compares them.
  public static func == (a: Self, b: Self) -> Bool {
    ByteString(a.collection) == ByteString(b.collection) && ByteString(a.key) == ByteString(b.key)
  }

  /// Hashes the UTF-8 bytes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ByteString(collection))
    hasher.combine(ByteString(key))
  }
}

extension Persistable {
  /// Where this item is.
  public var index: Index { Self.index(forKey: identifier) }

  /// Where the item with this identifier is, or would be.
  public static func index(forKey key: Identifier) -> Index {
    Index(collection: collection, key: self.key(for: key))
  }

  /// The key that an index stands for.
  ///
  /// An index may come out of a store, so one of another collection is an error, not a programmer's mistake.
  ///
  /// - Throws: `CofferError.unsupported`.
  static func key(at index: Index) throws -> String {
    guard ByteString(index.collection) == ByteString(collection) else {
      throw CofferError.unsupported(
        reason: "the index is one of collection \"\(index.collection)\", and \(Self.self) is kept in \"\(collection)\"")
    }
    return index.key
  }
}
