import Coffer

extension Reading where Self: ~Copyable {
  // MARK: Counts

  /// The number of collections that are not empty.
  public borrowing func numberOfCollections() throws -> Int {
    try session.collectionNames().count
  }

  /// The number of keys in all collections.
  public borrowing func numberOfKeysInAllCollections() throws -> Int {
    try session.count(in: nil)
  }

  // MARK: Enumerations

  /// Visits the keys of all collections.
  public borrowing func enumerateKeysInAllCollections(
    _ body: (_ collection: String, _ key: String, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerateAll(.keys, nil) { collection, key, _, stop in try body(collection, key, &stop) }
  }

  /// Visits the keys of all collections with their objects.
  ///
  /// - Throws: As `enumerateKeysAndObjects(inCollection:within:as:where:_:)`.
  public borrowing func enumerateKeysAndObjectsInAllCollections<Object: Decodable>(
    as type: Object.Type = Object.self, where filter: ((_ collection: String, _ key: String) throws -> Bool)? = nil,
    _ body: (_ collection: String, _ key: String, _ object: Object, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerateAll(.objects, filter) { collection, key, cursor, stop in
      try body(collection, key, try core.decode(cursor.object(), as: type, key, in: collection), &stop)
    }
  }

  /// Visits the keys of all collections with their metadata, or nil.
  ///
  /// - Throws: As `enumerateKeysAndMetadata(inCollection:within:as:where:_:)`.
  public borrowing func enumerateKeysAndMetadataInAllCollections<Metadata: Decodable>(
    as type: Metadata.Type = Metadata.self,
    where filter: ((_ collection: String, _ key: String) throws -> Bool)? = nil,
    _ body: (_ collection: String, _ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerateAll(.metadata, filter) { collection, key, cursor, stop in
      try body(collection, key, try core.metadata(cursor.metadata(), as: type, key, in: collection), &stop)
    }
  }

  /// Visits the keys of all collections with their objects and metadata.
  ///
  /// - Throws: As `enumerateRows(inCollection:within:as:metadata:where:_:)`.
  public borrowing func enumerateRowsInAllCollections<Object: Decodable, Metadata: Decodable>(
    as type: Object.Type = Object.self, metadata metadataType: Metadata.Type = Metadata.self,
    where filter: ((_ collection: String, _ key: String) throws -> Bool)? = nil,
    _ body: (
      _ collection: String, _ key: String, _ object: Object, _ metadata: Metadata?, _ stop: inout Bool
    ) throws -> Void
  ) throws {
    let core = session.core
    try enumerateAll(.rows, filter) { collection, key, cursor, stop in
      try body(
        collection, key, try core.decode(cursor.object(), as: type, key, in: collection),
        try core.metadata(cursor.metadata(), as: metadataType, key, in: collection),
        &stop)
    }
  }

  private borrowing func enumerateAll(
    _ columns: Cursor.Columns, _ filter: ((String, String) throws -> Bool)?,
    _ body: (String, String, Cursor, inout Bool) throws -> Void
  ) throws {
    var stop = false
    try session.enumerate(nil, .all, columns) { collection, cursor in
      let key = cursor.key
      if try filter?(collection, key) ?? true { try body(collection, key, cursor, &stop) }
      return !stop
    }
  }
}
