extension ConnectionProxy {
  /// The object for a key: the one set last through this proxy, else the committed one; nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored; `.closed`, `.damaged` or `.inputOutput`.
  public func object<Object: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self
  ) throws -> Object? {
    if !database.core.hasAnyRules, let number: Object? = state.number(key, collection) { return number }
    return try item(key, in: collection).map { try decode($0, key, in: collection) }
  }

  @inline(__always)
  func decode<Object: Decodable>(_ item: HeldItem, _ key: String, in collection: String) throws -> Object {
    let core = database.core
    if !core.hasAnyRules, let object = item.object.undecoded(as: Object.self) { return object }
    return try core.decode(.object, item.object.stored, as: Object.self, key, in: collection)
  }

  /// The object for a key as it describes itself, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata for a key, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    try item(key, in: collection)?.metadata
      .map { try database.core.decode(.metadata, $0, as: type, key, in: collection) }
  }

  /// Object and metadata for a key, as they were at one moment; nil when there is none.
  ///
  /// ```swift
  /// if let row = try settings.row(forKey: "photo", as: Photo.self, metadata: Date.self) {
  ///   print(row.object, row.metadata ?? "no date")
  /// }
  /// ```
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func row<Object: Decodable, Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self
  ) throws -> (object: Object, metadata: Metadata?)? {
    guard let item = try item(key, in: collection) else { return nil }
    return (
      try decode(item, key, in: collection),
      try item.metadata.map { try database.core.decode(.metadata, $0, as: metadataType, key, in: collection) }
    )
  }

  /// Whether there is an object for a key.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    try item(key, in: collection) != nil
  }

  /// Both values for a key, as they show.
  private func item(_ key: String, in collection: String) throws -> HeldItem? {
    try state.visible(key, in: collection).item
  }
}
