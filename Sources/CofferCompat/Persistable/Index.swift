import Coffer

/// A reference to an item: its collection, and its key there.
///
/// An item can hold the index of another one to refer to it:
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

  /// Creates the index of a key in a collection.
  public init(collection: String, key: String) {
    self.collection = collection
    self.key = key
  }

  /// Compares by the UTF-8 bytes of the names, as the store does.
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
  /// The index of this item.
  public var index: Index { Self.index(forKey: identifier) }

  /// The index of an item with this identifier, whether it exists or not.
  public static func index(forKey key: Identifier) -> Index {
    Index(collection: collection, key: self.key(for: key))
  }

  /// The key in an index.
  ///
  /// An index may come from a store, so one of another collection is an error, not a programming error.
  ///
  /// - Throws: `CofferError.unsupported`.
  static func key(at index: Index) throws -> String {
    guard ByteString(index.collection) == ByteString(collection) else {
      throw CofferError.unsupported(
        reason:
          "the index refers to collection \"\(index.collection)\", but \(Self.self) is stored in \"\(collection)\"")
    }
    return index.key
  }
}
