#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ConnectionProxy {
  /// The object of a key, or nil: the one last set through this proxy, or else the committed one.
  ///
  /// - Throws: `CofferError.notDecodable` when the value has another type; `.vaultLocked` when it is sealed and the vault is
  ///   locked; `.closed`, `.damaged` or `.inputOutput`.
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

  /// The object of a key as a self-describing ``Value``, or nil.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata of a key, or nil.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try database.core.metadata(item(key, in: collection)?.metadata, as: type, key, in: collection)
  }

  /// Object and metadata of a key as of one moment, or nil.
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

  /// When the item of a key expires; nil if it does not expire, or is absent.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func expiry(forKey key: String, inCollection collection: String = "") throws -> Date? {
    try item(key, in: collection)?.dates.expires.map(Date.init(milliseconds:))
  }

  /// Whether a key has an object.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    try item(key, in: collection) != nil
  }

  /// The object of a key as a ``Value``, and whether it is sealed in the store; nil if it is absent.
  package func openedValue(
    forKey key: String, inCollection collection: String
  ) throws -> (value: Value, isSealed: Bool)? {
    try item(key, in: collection).map { try database.core.openedValue($0, key, in: collection) }
  }

  /// Both visible values of a key.
  private func item(_ key: String, in collection: String) throws -> HeldItem? {
    try state.visible(key, in: collection, isCounted: true).item
  }
}
