#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ConnectionProxy {
  /// The object for a key: the one set last through this proxy, else the committed one; nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored; `.locked` when the value is sealed and the vault locked;
  ///   `.closed`, `.damaged` or `.inputOutput`.
  @inlinable
  public func object<Object: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self
  ) throws -> Object? {
    try PlainType.value(
      of: Object.self, int: integer(key, collection), bool: boolean(key, collection), double: double(key, collection),
      string: string(key, collection), otherwise: decodedObject(key, collection))
  }

  @usableFromInline
  func integer(_ key: String, _ collection: String) throws -> Int? { try number(key, collection) }

  @usableFromInline
  func boolean(_ key: String, _ collection: String) throws -> Bool? { try number(key, collection) }

  @usableFromInline
  func double(_ key: String, _ collection: String) throws -> Double? { try number(key, collection) }

  @usableFromInline
  func string(_ key: String, _ collection: String) throws -> String? {
    if !state.core.takesDetour, let string = state.string(key, collection) { return string }
    return try decodedObject(key, collection)
  }

  @inline(__always)
  private func number<Number: Decodable>(_ key: String, _ collection: String) throws -> Number? {
    if !state.core.takesDetour, let number: Number? = state.number(key, collection) { return number }
    return try decodedObject(key, collection)
  }

  @usableFromInline
  func decodedObject<Object: Decodable>(_ key: String, _ collection: String) throws -> Object? {
    try item(key, in: collection).map { try decode($0, key, in: collection) }
  }

  @inline(__always)
  func decode<Object: Decodable>(_ item: HeldItem, _ key: String, in collection: String) throws -> Object {
    try database.core.decode(item.object, as: Object.self, key, in: collection)
  }

  /// The object for a key as it describes itself, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata for a key, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try database.core.metadata(item(key, in: collection)?.metadata, as: type, key, in: collection)
  }

  /// Object and metadata for a key, as they were at one moment; nil when there is none.
  ///
  /// ```swift
  /// if let row = try settings.row(forKey: "photo", as: Photo.self, metadata: Date.self) {
  ///   print(row.object, row.metadata ?? "no date")
  /// }
  /// ```
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func row<Object: Decodable, Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self
  ) throws -> (object: Object, metadata: Metadata?)? {
    guard let item = try item(key, in: collection) else { return nil }
    return (
      try decode(item, key, in: collection),
      try database.core.metadata(item.metadata, as: metadataType, key, in: collection)
    )
  }

  /// When the item for a key expires; nil for one that stays, and where there is none.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func expiry(forKey key: String, inCollection collection: String = "") throws -> Date? {
    try item(key, in: collection)?.dates.expires.map(Date.init(milliseconds:))
  }

  /// Whether there is an object for a key.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    try item(key, in: collection) != nil
  }

  /// The object for a key as it describes itself, and whether it is sealed in the store; nil when there is none.
  package func openedValue(
    forKey key: String, inCollection collection: String
  ) throws -> (value: Value, isSealed: Bool)? {
    try item(key, in: collection).map { try database.core.openedValue($0, key, in: collection) }
  }

  /// Both values for a key, as they show.
  private func item(_ key: String, in collection: String) throws -> HeldItem? {
    try state.visible(key, in: collection, isCounted: true).item
  }
}
