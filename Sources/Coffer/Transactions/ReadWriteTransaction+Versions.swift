// Writes that are made only if a key has not changed since it was read. To write a value computed outside of a transaction:
//
//   while true {
//     let (old, version) = try connection.read { transaction in
//       (try transaction.object(forKey: "counter", as: Int.self), try transaction.version(forKey: "counter"))
//     }
//     let new = compute(old)
//     do {
//       return try connection.readWrite { try $0.setObject(new, forKey: "counter", ifVersion: version) }
//     } catch CofferError.versionMismatch {}  // Someone was faster.
//   }

extension ReadWriteTransaction {
  // MARK: Conditions

  /// Throws unless a key has this version; 0 means that the key is absent.
  ///
  /// The rest of the transaction is then based on that version, whichever keys it changes:
  ///
  /// ```swift
  /// try transaction.require(version: seen, forKey: "plan")
  /// try transaction.replaceMetadata("approved", forKey: "plan")
  /// ```
  ///
  /// In `writeWithoutTransaction`, where each operation commits separately, use `inSavepoint` around both.
  ///
  /// - Throws: `CofferError.versionMismatch`.
  public borrowing func require(
    version: Int64, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.require(version: version, key, in: collection)
  }

  /// Sets the object and the metadata of a key if its version is still `version`; 0 means that the key is absent.
  ///
  /// A nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed; as `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "",
    withMetadata metadata: Metadata? = Never?.none, ifVersion version: Int64
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try setObject(object, forKey: key, inCollection: collection, withMetadata: metadata)
    }
  }

  /// The same without metadata, also for a literal `nil`.
  ///
  /// - Throws: As the form with metadata.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?,
    ifVersion version: Int64
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try setObject(object, forKey: key, inCollection: collection)
    }
  }

  /// Sets object and metadata that are already serialized, if the key's version is still `version`; 0 means that the key is
  /// absent.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed; the errors of a sanitizer.
  public borrowing func setSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = "",
    withMetadata metadata: SerializedValue? = nil, ifVersion version: Int64
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try setSerializedObject(object, forKey: key, inCollection: collection, withMetadata: metadata)
    }
  }

  /// Sets the object and the metadata of a key that does not exist yet, like `ifVersion: 0`.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed; as `setObject(_:forKey:inCollection:)`.
  public borrowing func setObjectIfAbsent<Object: Encodable, Metadata: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "",
    withMetadata metadata: Metadata? = Never?.none
  ) throws {
    try setObject(object, forKey: key, inCollection: collection, withMetadata: metadata, ifVersion: 0)
  }

  /// The same without metadata, also for a literal `nil`.
  ///
  /// - Throws: As the form with metadata.
  public borrowing func setObjectIfAbsent<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?
  ) throws {
    try setObject(object, forKey: key, inCollection: collection, ifVersion: 0)
  }

  /// Removes a key if its version is still `version`.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed.
  public borrowing func removeObject(
    forKey key: String, inCollection collection: String = "", ifVersion version: Int64
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try session.remove(key, in: collection)
    }
  }
}
