import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A type whose values are stored in a collection of their own, each under its identifier.
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
/// An identifier is text, a number, a UUID, or any other `LosslessStringConvertible` type; for other types, implement
/// ``key(for:)``.
///
/// An item's metadata is stored beside it, and can be read and replaced without it. Writing an item writes its metadata;
/// reading an item sets it to the stored metadata, even if it is also part of the encoded item:
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
/// Rows are not marked as items: what another program has put into the collection is read as an item too.
public protocol Persistable: Codable, Sendable, _HasMetadata {
  /// The type of ``metadata``; `Never` unless declared.
  associatedtype Metadata: Codable, Sendable = Never
  /// The type that identifies items of this type.
  associatedtype Identifier: Sendable

  /// The collection of all items of this type.
  static var collection: String { get }
  /// Identifies this item among the others of its type.
  var identifier: Identifier { get }
  /// The data stored beside this item, or nil.
  var metadata: Metadata? { get set }
  /// The key of an identifier: always the same, and different for different identifiers.
  ///
  /// There is a default for text, numbers, UUIDs, and other `LosslessStringConvertible` types.
  static func key(for identifier: Identifier) -> String
  /// Makes the compiler check that `metadata` is an optional variable.
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
  /// No metadata.
  public var metadata: Never? {
    get { nil }
    set {}
  }
}

// MARK: - Metadata of another form

// A `metadata` that is not optional, or cannot be set, does not satisfy the requirement; the default above would be used
// instead, and the declared metadata would never be stored. The associated type below lets the compiler find what a type has
// under that name, and it accepts the type only if that is what is stored.

/// What a type has under the name `metadata`, of any type.
public protocol _HasMetadata {
  /// The type of `metadata`.
  associatedtype _DeclaredMetadata
  /// The declared property.
  var metadata: _DeclaredMetadata { get }
}

extension Persistable where _DeclaredMetadata == Metadata? {
  /// Does nothing.
  public static func _metadataIsAnOptionalVariable() {}
}

extension Persistable {
  /// Chosen for any other `metadata`.
  @available(
    *, unavailable,
    message: "metadata must be a variable of an optional type: 'var metadata: Date?', or '{ get … set … }'"
  )
  public static func _metadataIsAnOptionalVariable() {}
}
