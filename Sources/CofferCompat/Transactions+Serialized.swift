import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Reading where Self: ~Copyable {
  /// The object of a key in its stored form, or nil; a sealed one as plaintext.
  public borrowing func serializedObject(
    forKey key: String, inCollection collection: String = ""
  ) throws -> SerializedValue? {
    let core = session.core
    return try session.item(key, in: collection).map {
      SerializedValue(try core.opened($0.object, key, in: collection))
    }
  }

  /// The metadata of a key in its stored form, or nil; sealed metadata as plaintext.
  public borrowing func serializedMetadata(
    forKey key: String, inCollection collection: String = ""
  ) throws -> SerializedValue? {
    let core = session.core
    return try session.item(key, in: collection)?.metadata.map {
      SerializedValue(try core.opened(.metadata, $0, key, in: collection))
    }
  }

  /// Object and metadata of a key in their stored form, or nil; sealed values as plaintext.
  public borrowing func serializedRow(
    forKey key: String, inCollection collection: String = ""
  ) throws -> (object: SerializedValue, metadata: SerializedValue?)? {
    let core = session.core
    return try session.item(key, in: collection).map { item in
      (
        SerializedValue(try core.opened(item.object, key, in: collection)),
        try item.metadata.map { SerializedValue(try core.opened(.metadata, $0, key, in: collection)) }
      )
    }
  }
}

extension ReadWriteTransaction {
  /// Sets object and metadata that are already serialized.
  ///
  /// - Parameters:
  ///   - expires: When the item expires; nil for never.
  ///   - due: When it should be renewed; nil for never.
  /// - Throws: The errors of a sanitizer.
  public borrowing func setSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = "",
    withMetadata metadata: SerializedValue? = nil, expires: Date? = nil, due: Date? = nil
  ) throws {
    try session.change(key, in: collection) {
      try $0.settingSerialized(
        object.stored, metadata: metadata?.stored, dates: ItemDates(expires: expires, due: due), key, in: collection)
    }
  }

  /// Replaces the object of a key with one that is already serialized, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing if the key is absent.
  ///
  /// - Throws: The errors of a sanitizer.
  public borrowing func replaceSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) {
      try $0.replacingSerialized(.object, object.stored, key, in: collection)
    }
  }

  /// Replaces the metadata of a key with metadata that is already serialized, keeping its object.
  ///
  /// Does nothing if the key is absent.
  ///
  /// - Throws: The errors of a sanitizer.
  public borrowing func replaceSerializedMetadata(
    _ metadata: SerializedValue, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) {
      try $0.replacingSerialized(.metadata, metadata.stored, key, in: collection)
    }
  }

  /// Sets object and metadata that are already serialized, if the key's version is still `version`; 0 means that the key is
  /// absent.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed; the errors of a sanitizer.
  public borrowing func setSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = "",
    withMetadata metadata: SerializedValue? = nil, ifVersion version: CommitNumber
  ) throws {
    let session = session
    try session.inTransaction {
      try session.require(version: version, key, in: collection)
      try setSerializedObject(object, forKey: key, inCollection: collection, withMetadata: metadata)
    }
  }
}
