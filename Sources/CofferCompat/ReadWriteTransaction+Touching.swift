import Coffer

extension ReadWriteTransaction {
  /// Announces the object for a key as changed, without changing it.
  ///
  /// Does nothing where there is no such key.
  public borrowing func touchObject(forKey key: String, inCollection collection: String = "") throws {
    try session.touch(.object, key, in: collection)
  }

  /// Announces the metadata for a key as changed, without changing it.
  ///
  /// Does nothing where there is no such key.
  public borrowing func touchMetadata(forKey key: String, inCollection collection: String = "") throws {
    try session.touch(.metadata, key, in: collection)
  }

  /// Announces object and metadata for a key as changed, without changing them.
  ///
  /// Does nothing where there is no such key.
  public borrowing func touchRow(forKey key: String, inCollection collection: String = "") throws {
    try session.touch(nil, key, in: collection)
  }
}
