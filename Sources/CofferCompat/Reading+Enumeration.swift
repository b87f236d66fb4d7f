import Coffer

// As `enumerateKeysAndObjects`: collections and keys come in the order of their UTF-8 bytes, as of the start of the
// enumeration; a body ends it by setting `stop`; the filter runs before a value is decoded.

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
    where filter: ((_ key: String) throws -> Bool)? = nil,
    _ body: (_ key: String, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
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
