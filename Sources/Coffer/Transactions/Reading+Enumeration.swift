// Enumerations go through collections, and in each of them through keys, in the order of their UTF-8 bytes. They see the
// rows as of their start, whatever is changed meanwhile, and may be nested. A body ends its enumeration by setting `stop`.
// The filter is asked about a key before its value is decoded.

/// Whether to visit a key.
public typealias KeyFilter = (_ key: String) throws -> Bool

extension Reading where Self: ~Copyable {
  // MARK: Names and keys

  /// Visits the names of the collections that hold something.
  public borrowing func enumerateCollections(_ body: (_ collection: String, _ stop: inout Bool) throws -> Void) throws {
    var stop = false
    for collection in try session.collectionNames() where !stop { try body(collection, &stop) }
  }

  /// Visits the keys of a collection.
  public borrowing func enumerateKeys(
    inCollection collection: String = "", within range: KeyRange = .all,
    _ body: (_ key: String, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(collection, range, .keys, nil) { row, stop in try body(row.key, &stop) }
  }

  /// Visits the keys of all collections.
  public borrowing func enumerateKeysInAllCollections(
    _ body: (_ collection: String, _ key: String, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerateAll(.keys, nil) { collection, row, stop in try body(collection, row.key, &stop) }
  }

  // MARK: Objects

  /// Visits the keys of a collection with their objects.
  ///
  /// ```swift
  /// try transaction.enumerateKeysAndObjects(inCollection: "accounts", as: Account.self) { key, account, stop in
  ///   print(key, account.name)
  /// }
  /// ```
  ///
  /// - Throws: `CofferError.notDecodable` at the first object of another type; what `filter` and `body` throw.
  public borrowing func enumerateKeysAndObjects<Object: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    where filter: KeyFilter? = nil, _ body: (_ key: String, _ object: Object, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(collection, range, .objects, filter) { row, stop in
      try body(row.key, try object(of: row, collection), &stop)
    }
  }

  /// Visits the keys of all collections with their objects.
  ///
  /// - Throws: As `enumerateKeysAndObjects(inCollection:within:as:where:_:)`.
  public borrowing func enumerateKeysAndObjectsInAllCollections<Object: Decodable>(
    as type: Object.Type = Object.self, where filter: ((_ collection: String, _ key: String) throws -> Bool)? = nil,
    _ body: (_ collection: String, _ key: String, _ object: Object, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerateAll(.objects, filter) { collection, row, stop in
      try body(collection, row.key, try object(of: row, collection), &stop)
    }
  }

  /// Visits each of `keys` once, in their order, with its object; nil where there is none.
  ///
  /// - Throws: As `enumerateKeysAndObjects(inCollection:within:as:where:_:)`.
  public borrowing func enumerateObjects<Object: Decodable>(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", as type: Object.Type = Object.self,
    _ body: (_ key: String, _ object: Object?, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(keys, collection) { key, item, stop in
      try body(key, try item.map { try object(of: $0, key, collection) }, &stop)
    }
  }

  // MARK: Metadata

  /// Visits the keys of a collection with their metadata, nil where there is none.
  ///
  /// - Throws: `CofferError.notDecodable` at the first metadata of another type; what `filter` and `body` throw.
  public borrowing func enumerateKeysAndMetadata<Metadata: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Metadata.Type = Metadata.self,
    where filter: KeyFilter? = nil, _ body: (_ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(collection, range, .metadata, filter) { row, stop in
      try body(row.key, try metadata(row.metadata, row.key, collection), &stop)
    }
  }

  /// Visits the keys of all collections with their metadata, nil where there is none.
  ///
  /// - Throws: As `enumerateKeysAndMetadata(inCollection:within:as:where:_:)`.
  public borrowing func enumerateKeysAndMetadataInAllCollections<Metadata: Decodable>(
    as type: Metadata.Type = Metadata.self,
    where filter: ((_ collection: String, _ key: String) throws -> Bool)? = nil,
    _ body: (_ collection: String, _ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerateAll(.metadata, filter) { collection, row, stop in
      try body(collection, row.key, try metadata(row.metadata, row.key, collection), &stop)
    }
  }

  /// Visits each of `keys` once, in their order, with its metadata; nil where there is none, or no such key.
  ///
  /// - Throws: As `enumerateKeysAndMetadata(inCollection:within:as:where:_:)`.
  public borrowing func enumerateMetadata<Metadata: Decodable>(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", as type: Metadata.Type = Metadata.self,
    _ body: (_ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(keys, collection) { key, item, stop in
      try body(key, try metadata(item?.metadata, key, collection), &stop)
    }
  }

  // MARK: Rows

  /// Visits the keys of a collection with their objects and metadata.
  ///
  /// - Throws: `CofferError.notDecodable` at the first value of another type; what `filter` and `body` throw.
  public borrowing func enumerateRows<Object: Decodable, Metadata: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self, where filter: KeyFilter? = nil,
    _ body: (_ key: String, _ object: Object, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(collection, range, .rows, filter) { row, stop in
      try body(row.key, try object(of: row, collection), try metadata(row.metadata, row.key, collection), &stop)
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
    try enumerateAll(.rows, filter) { collection, row, stop in
      try body(
        collection, row.key, try object(of: row, collection), try metadata(row.metadata, row.key, collection), &stop)
    }
  }

  /// Visits each of `keys` once, in their order, with its object and metadata; nil where there are none.
  ///
  /// - Throws: As `enumerateRows(inCollection:within:as:metadata:where:_:)`.
  public borrowing func enumerateRows<Object: Decodable, Metadata: Decodable>(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self,
    _ body: (_ key: String, _ object: Object?, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(keys, collection) { key, item, stop in
      try body(
        key, try item.map { try object(of: $0, key, collection) }, try metadata(item?.metadata, key, collection), &stop)
    }
  }

  // MARK: Parts

  private borrowing func enumerate(
    _ collection: String, _ range: KeyRange, _ columns: Cursor.Columns, _ filter: KeyFilter?,
    _ body: (Cursor.Row, inout Bool) throws -> Void
  ) throws {
    var stop = false
    try session.enumerate(collection, range, columns) { _, row in
      if try filter?(row.key) ?? true { try body(row, &stop) }
      return !stop
    }
  }

  private borrowing func enumerateAll(
    _ columns: Cursor.Columns, _ filter: ((String, String) throws -> Bool)?,
    _ body: (String, Cursor.Row, inout Bool) throws -> Void
  ) throws {
    var stop = false
    try session.enumerate(nil, .all, columns) { collection, row in
      if try filter?(collection, row.key) ?? true { try body(collection, row, &stop) }
      return !stop
    }
  }

  /// Each key once; what changes meanwhile is not seen, since all are read before the first is handed out.
  private borrowing func enumerate(
    _ keys: some Sequence<String>, _ collection: String, _ body: (String, StoredItem?, inout Bool) throws -> Void
  ) throws {
    var visited = Set<ByteString>()
    let unique = keys.filter { visited.insert(ByteString($0)).inserted }
    let items = try session.reading { try unique.map { try session.item($0, in: collection) } }
    var stop = false
    for (key, item) in zip(unique, items) where !stop { try body(key, item, &stop) }
  }

  private borrowing func object<Object: Decodable>(of row: Cursor.Row, _ collection: String) throws -> Object {
    guard let stored = row.object else { preconditionFailure("the enumeration reads no objects") }
    return try session.core.decode(.object, stored, as: Object.self, row.key, in: collection)
  }

  private borrowing func object<Object: Decodable>(
    of item: StoredItem, _ key: String, _ collection: String
  ) throws -> Object {
    try session.core.decode(.object, item.object, as: Object.self, key, in: collection)
  }

  private borrowing func metadata<Metadata: Decodable>(
    _ stored: StoredValue?, _ key: String, _ collection: String
  ) throws -> Metadata? {
    try stored.map { try session.core.decode(.metadata, $0, as: Metadata.self, key, in: collection) }
  }
}
