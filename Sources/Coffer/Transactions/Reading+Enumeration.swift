// Enumerations visit collections, and the keys in each of them, in the order of their UTF-8 bytes. They see the rows as of
// their start, regardless of later changes, and can be nested. A body ends its enumeration by setting `stop`. The filter
// runs before a value is decoded.

/// Whether to visit a key.
public typealias KeyFilter = (_ key: String) throws -> Bool

extension Reading where Self: ~Copyable {
  // MARK: Names and keys

  /// Visits the names of the collections that are not empty.
  public borrowing func enumerateCollections(_ body: (_ collection: String, _ stop: inout Bool) throws -> Void) throws {
    var stop = false
    for collection in try session.collectionNames() where !stop { try body(collection, &stop) }
  }

  /// Visits the keys of a collection.
  public borrowing func enumerateKeys(
    inCollection collection: String = "", within range: KeyRange = .all,
    _ body: (_ key: String, _ stop: inout Bool) throws -> Void
  ) throws {
    try enumerate(collection, range, .keys, nil) { key, _, stop in try body(key, &stop) }
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
  /// - Throws: `CofferError.notDecodable` at the first object of another type; the errors of `filter` and `body`.
  public borrowing func enumerateKeysAndObjects<Object: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    where filter: KeyFilter? = nil, _ body: (_ key: String, _ object: Object, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(collection, range, .objects, filter) { key, cursor, stop in
      try body(key, try core.decode(cursor.object(), as: type, key, in: collection), &stop)
    }
  }

  /// Visits each of `keys` once, in their order, with its object, or nil.
  ///
  /// - Throws: As `enumerateKeysAndObjects(inCollection:within:as:where:_:)`.
  public borrowing func enumerateObjects<Object: Decodable>(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", as type: Object.Type = Object.self,
    _ body: (_ key: String, _ object: Object?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(keys, collection) { key, item, stop in
      try body(key, try item.map { try core.decode($0.object, as: type, key, in: collection) }, &stop)
    }
  }

  // MARK: Metadata

  /// Visits the keys of a collection with their metadata, or nil.
  ///
  /// - Throws: `CofferError.notDecodable` at the first metadata of another type; the errors of `filter` and `body`.
  public borrowing func enumerateKeysAndMetadata<Metadata: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Metadata.Type = Metadata.self,
    where filter: KeyFilter? = nil, _ body: (_ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(collection, range, .metadata, filter) { key, cursor, stop in
      try body(key, try core.metadata(cursor.metadata(), as: type, key, in: collection), &stop)
    }
  }

  /// Visits each of `keys` once, in their order, with its metadata; nil if it has none, or the key is absent.
  ///
  /// - Throws: As `enumerateKeysAndMetadata(inCollection:within:as:where:_:)`.
  public borrowing func enumerateMetadata<Metadata: Decodable>(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", as type: Metadata.Type = Metadata.self,
    _ body: (_ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(keys, collection) { key, item, stop in
      try body(key, try core.metadata(item?.metadata, as: type, key, in: collection), &stop)
    }
  }

  // MARK: Rows

  /// Visits the keys of a collection with their objects and metadata.
  ///
  /// - Throws: `CofferError.notDecodable` at the first value of another type; the errors of `filter` and `body`.
  public borrowing func enumerateRows<Object: Decodable, Metadata: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self, where filter: KeyFilter? = nil,
    _ body: (_ key: String, _ object: Object, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(collection, range, .rows, filter) { key, cursor, stop in
      try body(
        key, try core.decode(cursor.object(), as: type, key, in: collection),
        try core.metadata(cursor.metadata(), as: metadataType, key, in: collection), &stop)
    }
  }

  /// Visits each of `keys` once, in their order, with its object and metadata, each of which may be nil.
  ///
  /// - Throws: As `enumerateRows(inCollection:within:as:metadata:where:_:)`.
  public borrowing func enumerateRows<Object: Decodable, Metadata: Decodable>(
    forKeys keys: some Sequence<String>, inCollection collection: String = "", as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self,
    _ body: (_ key: String, _ object: Object?, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(keys, collection) { key, item, stop in
      try body(
        key, try item.map { try core.decode($0.object, as: type, key, in: collection) },
        try core.metadata(item?.metadata, as: metadataType, key, in: collection),
        &stop)
    }
  }

  // MARK: Parts

  private borrowing func enumerate(
    _ collection: String, _ range: KeyRange, _ columns: Cursor.Columns, _ filter: KeyFilter?,
    _ body: (String, Cursor, inout Bool) throws -> Void
  ) throws {
    var stop = false
    try session.enumerate(collection, range, columns) { _, cursor in
      let key = cursor.key
      if try filter?(key) ?? true { try body(key, cursor, &stop) }
      return !stop
    }
  }

  /// Visits each key once.
  ///
  /// All are read before the first is passed on, so later changes are not seen.
  private borrowing func enumerate(
    _ keys: some Sequence<String>, _ collection: String, _ body: (String, HeldItem?, inout Bool) throws -> Void
  ) throws {
    var visited = Set<ByteString>()
    let unique = keys.filter { visited.insert(ByteString($0)).inserted }
    let items = try session.reading { try unique.map { try session.item($0, in: collection) } }
    var stop = false
    for (key, item) in zip(unique, items) where !stop { try body(key, item, &stop) }
  }
}
