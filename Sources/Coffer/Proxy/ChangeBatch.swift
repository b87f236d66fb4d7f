#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Changes that are made in one step; see `ConnectionProxy.performBatch(durability:_:)`.
public struct ChangeBatch {
  private let proxy: ConnectionProxy
  private(set) var changes: [PendingChanges.KeyChange] = []

  init(proxy: ConnectionProxy) {
    self.proxy = proxy
  }

  /// Sets the object of a key, without metadata; nil removes the key.
  ///
  /// - Throws: `CofferError.notEncodable` or `.collectionNotAllowed`; the errors of a sanitizer.
  public mutating func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = ""
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection) }
    try add(try proxy.database.core.setting(object, key, in: collection), key, in: collection)
  }

  /// Sets the object and the metadata of a key; a nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public mutating func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection) }
    try add(try proxy.database.core.setting(object, metadata: metadata, key, in: collection), key, in: collection)
  }

  /// Sets the object of a key, with an expiry and without metadata; see
  /// `ConnectionProxy.setObject(_:forKey:inCollection:expires:due:durability:)`.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public mutating func setObject<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "", expires: Date?, due: Date? = nil
  ) throws {
    let dates = ItemDates(expires: expires, due: due)
    try add(try proxy.database.core.setting(object, dates: dates, key, in: collection), key, in: collection)
  }

  /// Removes a key; does nothing if it is absent.
  ///
  /// - Throws: `CofferError.collectionNotAllowed`.
  public mutating func removeObject(forKey key: String, inCollection collection: String = "") throws {
    try add(.removed, key, in: collection)
  }

  private mutating func add(_ mutation: Mutation, _ key: String, in collection: String) throws {
    try proxy.checkMayWrite(collection)
    changes.append(PendingChanges.KeyChange(mutation: mutation, key: key, collection: collection))
  }
}
