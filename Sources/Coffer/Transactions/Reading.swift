/// What a transaction works on; only Coffer makes one.
public struct TransactionContext {
  let session: Session
}

/// What read and write transactions have in common. Helpers that work in both take one of either kind:
///
/// ```swift
/// func theme(_ transaction: borrowing some Reading & ~Copyable) throws -> String {
///   try transaction.object(forKey: "theme", inCollection: "ui") ?? "light"
/// }
/// ```
public protocol Reading: ~Copyable {
  /// What the transaction works on.
  var context: TransactionContext { get }
}

extension Reading where Self: ~Copyable {
  private var session: Session { context.session }

  // MARK: One item

  /// The object for a key, nil when there is none.
  ///
  /// ```swift
  /// let retries: Int? = try transaction.object(forKey: "retries")
  /// let theme = try transaction.object(forKey: "theme", inCollection: "ui", as: Theme.self)
  /// ```
  ///
  /// Types are exact: a stored Bool is no Int. An integer reads as any integer type it fits, and as Double where that
  /// loses nothing.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored; `.damaged` or `.inputOutput`.
  public borrowing func object<Object: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self
  ) throws -> Object? {
    try session.stored(key, in: collection).map { try $0.decoded(as: type, key, in: collection) }
  }

  /// The object for a key as it describes itself, nil when there is none.
  ///
  /// - Throws: `CofferError.damaged`, `.inputOutput` or `.notDecodable`.
  public borrowing func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata for a key, nil when there is none, or no such key.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public borrowing func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try session.metadata(key, in: collection).map { try $0.decoded(as: type, key, in: collection) }
  }

  /// Whether there is an object for a key; its value is not read.
  ///
  /// - Throws: `CofferError.damaged` or `.inputOutput`.
  public borrowing func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    try session.has(key, in: collection)
  }

  /// Everything about a key: value, metadata, version and time; nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable`, `.damaged` or `.inputOutput`.
  public borrowing func item(forKey key: String, inCollection collection: String = "") throws -> Item? {
    guard let row = try session.fullRow(key, in: collection) else { return nil }
    return Item(
      collection: collection, key: key, value: try row.stored.decoded(as: Value.self, key, in: collection),
      metadata: try row.metadata?.decoded(as: Value.self, key, in: collection), version: row.version,
      modified: .init(milliseconds: row.modified))
  }

  // MARK: Counts and lists

  /// How many collections hold something.
  ///
  /// - Throws: `CofferError.damaged` or `.inputOutput`, like the others below.
  public borrowing func numberOfCollections() throws -> Int {
    try session.collectionNames().count
  }

  /// How many keys a collection holds; 0 when there is no such collection.
  public borrowing func numberOfKeys(inCollection collection: String = "") throws -> Int {
    try session.count(in: collection)
  }

  /// How many keys all collections hold together.
  public borrowing func numberOfKeysInAllCollections() throws -> Int {
    try session.count(in: nil)
  }

  /// The names of the collections that hold something, in the order of their UTF-8 bytes.
  public borrowing func allCollections() throws -> [String] {
    try session.collectionNames()
  }

  /// The keys of a collection, in the order of their UTF-8 bytes.
  public borrowing func allKeys(inCollection collection: String = "") throws -> [String] {
    try session.keys(in: collection)
  }

  /// Kind, size, version and time of each item of a collection, by key; no value is read.
  public borrowing func itemInfos(inCollection collection: String = "") throws -> [ItemInfo] {
    try session.infos(in: collection)
  }

  /// The number of the snapshot that the transaction sees: it goes up by one with each commit that changed something.
  public borrowing func snapshot() throws -> UInt64 {
    try CofferError.translating { try session.snapshot() }
  }
}

extension StoredValue {
  /// - Throws: `CofferError.notDecodable`, naming collection, key and both types.
  func decoded<Object: Decodable>(as type: Object.Type, _ key: String, in collection: String) throws -> Object {
    do {
      return try ValueCoder.decode(self, as: type)
    } catch let error as ValueCodingError {
      throw CofferError.notDecodable(
        collection: collection, key: key, storedType: kind.name, requestedType: "\(type)", reason: error.reason)
    }
  }

  /// - Throws: `CofferError.notEncodable`, naming collection and key.
  init(encoding object: some Encodable, _ key: String, in collection: String) throws {
    do {
      self = try ValueCoder.encode(object)
    } catch let error as ValueCodingError {
      throw CofferError.notEncodable(collection: collection, key: key, reason: error.reason)
    } catch {
      // An error of the type's own `encode(to:)`; its text may quote the value.
      throw CofferError.notEncodable(collection: collection, key: key, reason: "its encoding failed")
    }
  }
}
