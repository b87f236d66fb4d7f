/// A type whose values live in a collection of their own, each under its identifier.
///
/// ```swift
/// struct Photo: Persistable {
///   static let collection = "photos"
///   let identifier: String
///   var title: String
/// }
///
/// try connection.write(Photo(identifier: "p1", title: "Dawn"))
/// let photo = try connection.read(Photo.self, key: "p1")
/// ```
///
/// What stands beside an item without being part of it, to be read without the item, is its metadata. It is made from the
/// item when the item is written, and reading the item leaves it aside:
///
/// ```swift
/// extension Photo {
///   var metadata: Date? { takenAt }  // Optional, also where it is never nil: else it is no metadata.
/// }
///
/// let date = try connection.readMetadata(Photo.self, key: "p1")
/// ```
///
/// Nothing marks a row as an item's: what another program has put into the collection is read as an item too.
public protocol Persistable: Codable, Sendable {
  /// What ``metadata`` is; nothing unless declared.
  associatedtype Metadata: Codable, Sendable = Never

  /// The collection of all items of this type.
  static var collection: String { get }
  /// The key of this item in the collection.
  var identifier: String { get }
  /// What is stored beside this item; nil for none.
  var metadata: Metadata? { get }
}

// Only for `Never`: who declares metadata and forgets to give it hears of it from the compiler.
extension Persistable where Metadata == Never {
  /// Nothing.
  public var metadata: Never? { nil }
}
