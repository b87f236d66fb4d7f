import Coffer

extension ReadWriteTransaction {
  /// Reports the object of a key as changed, without changing it.
  ///
  /// Does nothing if the key is absent.
  public borrowing func touchObject(forKey key: String, inCollection collection: String = "") throws {
    try session.touch(.object, key, in: collection)
  }

  /// Reports the metadata of a key as changed, without changing it.
  ///
  /// Does nothing if the key is absent.
  public borrowing func touchMetadata(forKey key: String, inCollection collection: String = "") throws {
    try session.touch(.metadata, key, in: collection)
  }

  /// Reports object and metadata of a key as changed, without changing them.
  ///
  /// Does nothing if the key is absent.
  public borrowing func touchRow(forKey key: String, inCollection collection: String = "") throws {
    try session.touch(nil, key, in: collection)
  }
}
