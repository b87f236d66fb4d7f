import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A type whose values live in a collection of their own, each under its identifier.
///
/// ```swift
/// struct Photo: Persistable {
///   static let collection = "photos"
///   let identifier: UUID
///   var title: String
/// }
///
/// let dawn = Photo(identifier: UUID(), title: "Dawn")
/// try connection.write(dawn)
/// let photo = try connection.read(Photo.self, key: dawn.identifier)
/// ```
///
/// An identifier is text, a number, a UUID, or of any other `LosslessStringConvertible` type; for the rest there is
/// ``key(for:)``.
///
/// What stands beside an item, to be read and replaced without it, is its metadata. Writing an item writes its metadata,
/// reading one sets it to what is stored, be it part of what is encoded or not:
///
/// ```swift
/// struct Film: Persistable {
///   static let collection = "films"
///   let identifier: Int
///   var title: String
///   var metadata: Date?
///
///   enum CodingKeys: CodingKey { case identifier, title }
/// }
///
/// let date = try connection.readMetadata(Film.self, key: 7)
/// ```
///
/// Nothing marks a row as an item's: what another program has put into the collection is read as an item too.
public protocol Persistable: Codable, Sendable, _HasMetadata {
  /// What ``metadata`` is; nothing unless declared.
  associatedtype Metadata: Codable, Sendable = Never
  /// What tells the items of this type apart.
  associatedtype Identifier: Sendable

  /// The collection of all items of this type.
  static var collection: String { get }
  /// What tells this item from the others of its type.
  var identifier: Identifier { get }
  /// What is stored beside this item; nil for none.
  var metadata: Metadata? { get set }
  /// The key that an identifier stands for: different ones for different identifiers, and always the same.
  ///
  /// There is one already for text, numbers, UUIDs, and whatever else is `LosslessStringConvertible`.
  static func key(for identifier: Identifier) -> String
  /// What an item cannot do without: the compiler looks for it where `metadata` is no optional variable.
  static func _metadataIsAnOptionalVariable()
}

extension Persistable where Identifier: LosslessStringConvertible {
  /// The identifier's own text.
  public static func key(for identifier: Identifier) -> String { identifier.description }
}

extension Persistable where Identifier == UUID {
  /// The UUID in capitals.
  public static func key(for identifier: Identifier) -> String { identifier.uuidString }
}

extension Persistable where Metadata == Never {
  /// Nothing.
  public var metadata: Never? {
    get { nil }
    set {}
  }
}

// MARK: - Metadata of another form

// A `metadata` that is not optional, or cannot be set, does not meet the requirement, and the one above would be taken in its
// place: what the type declares would never be stored. So the compiler is asked for what it finds under that name, and
// accepts it only where it is what is stored.

/// What a type has under the name `metadata`, whichever type that is.
public protocol _HasMetadata {
  /// The type of `metadata`.
  associatedtype _DeclaredMetadata
  /// What the type declares.
  var metadata: _DeclaredMetadata { get }
}

extension Persistable where _DeclaredMetadata == Metadata? {
  /// Nothing to be done.
  public static func _metadataIsAnOptionalVariable() {}
}

extension Persistable {
  /// Taken for any other `metadata`.
  @available(
    *, unavailable,
    message: "metadata has to be a variable of an optional type: 'var metadata: Date?', or '{ get … set … }'"
  )
  public static func _metadataIsAnOptionalVariable() {}
}
