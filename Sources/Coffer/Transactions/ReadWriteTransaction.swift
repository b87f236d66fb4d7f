/// A write transaction: it sees its own changes, and all of them become visible to others at once, or none.
///
/// `Connection.readWrite` lends it to a closure, which it cannot leave.
public struct ReadWriteTransaction: ~Copyable, Reading {
  /// What the transaction works on.
  public let context: TransactionContext

  init(context: TransactionContext) {
    self.context = context
  }

  /// Sets the object for a key, without metadata: what metadata there was is cleared.
  ///
  /// nil removes the key.
  ///
  /// Setting a value equal to the present one changes nothing.
  ///
  /// - Throws: `CofferError.notEncodable`, with nothing changed; `.diskFull`, `.damaged` or `.inputOutput`.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try set(object, metadata: nil, key, collection)
  }

  /// Removes a key: what a literal `nil` means as an object.
  ///
  /// - Throws: As `removeObject(forKey:inCollection:)`.
  public borrowing func setObject(_ nothing: Never?, forKey key: String, inCollection collection: String = "") throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Sets the object and the metadata for a key.
  ///
  /// A nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?
  ) throws {
    try set(object, metadata: try metadata.map { try StoredValue(encoding: $0, key, in: collection) }, key, collection)
  }

  private borrowing func set(
    _ object: (some Encodable)?, metadata: StoredValue?, _ key: String, _ collection: String
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection) }
    let stored = try StoredValue(encoding: object, key, in: collection)
    try context.session.set(stored, metadata: metadata, key, in: collection)
  }

  /// Removes a key with its object and metadata; an absent key changes nothing.
  ///
  /// - Throws: `CofferError.diskFull`, `.damaged` or `.inputOutput`.
  public borrowing func removeObject(forKey key: String, inCollection collection: String = "") throws {
    _ = try context.session.remove(key, in: collection)
  }

  /// Removes several keys; absent ones change nothing.
  ///
  /// - Throws: As `removeObject(forKey:inCollection:)`.
  public borrowing func removeObjects(forKeys keys: some Sequence<String>, inCollection collection: String = "") throws
  {
    for key in keys { try removeObject(forKey: key, inCollection: collection) }
  }

  /// Removes a collection: its items, their history, its name, and its keys in the change log.
  ///
  /// - Throws: As `removeObject(forKey:inCollection:)`.
  public borrowing func removeAllObjects(inCollection collection: String = "") throws {
    try context.session.removeAll(in: collection)
  }

  /// Discards all that this transaction changed before and will change after this call.
  ///
  /// The closure goes on to its end.
  public borrowing func rollback() {
    context.session.isRolledBack = true
  }
}
