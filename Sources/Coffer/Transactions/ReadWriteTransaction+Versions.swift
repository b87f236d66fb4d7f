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
    version: CommitNumber, forKey key: String, inCollection collection: String = ""
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
    withMetadata metadata: Metadata? = Never?.none, ifVersion version: CommitNumber
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try setObject(object, forKey: key, inCollection: collection, withMetadata: metadata)
    }
  }

  /// Removes a key if its version is still `version`.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed.
  public borrowing func removeObject(
    forKey key: String, inCollection collection: String = "", ifVersion version: CommitNumber
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try session.apply(.removed, key, in: collection)
    }
  }
}
