/// A change to a key: the form in which a program's writes reach the store, from a transaction, a proxy, a batch, a restored
/// version or an import; `Session.apply` lists what else changes items.
///
/// Its values are encoded and have passed the rules of the collection, so later changes by the caller do not affect them.
/// While they wait in a proxy for a sealed collection, they are sealed too.
package enum Mutation: Sendable {
  case set(HeldItem)
  case removed
  /// New values for an item, if it exists when they are written.
  ///
  /// Boxed: it is rare, and larger than the other cases, for which every item has room.
  indirect case replaced(Replacement)

  /// The new values of an item.
  package struct Replacement: Sendable {
    /// nil keeps the object.
    var object: HeldValue?
    /// nil keeps the metadata; an inner nil clears it.
    var metadata: StoredValue??

    /// The item keeps its expiry too.
    func applied(to item: HeldItem) -> HeldItem {
      HeldItem(object: object ?? item.object, metadata: metadata ?? item.metadata, dates: item.dates)
    }
  }

  /// This change combined with an earlier one.
  func over(_ earlier: Mutation?) -> Mutation {
    guard case .replaced(let new) = self else { return self }
    return switch earlier {
    case .set(let item): .set(new.applied(to: item))
    case .removed: .removed
    case .replaced(let old):
      .replaced(Replacement(object: new.object ?? old.object, metadata: new.metadata ?? old.metadata))
    case nil: self
    }
  }

  /// The size of its values, in bytes.
  @inline(__always)
  var byteCount: Int {
    switch self {
    case .set(let item): item.byteCount
    case .removed: 0
    case .replaced(let new): (new.object?.byteCount ?? 0) + ((new.metadata ?? nil)?.bytes.count ?? 0)
    }
  }
}

extension Mutation {
  /// Larger values would fail when they are written; in a proxy they would block all other pending changes.
  ///
  /// An object and metadata of this size, set separately, fit into SQLite's limit of a billion bytes together.
  private static let maximumByteCount = 490_000_000

  /// - Throws: `CofferError.notEncodable` for values that are too large to store.
  @inline(__always)
  func checkSize(_ key: String, in collection: String) throws {
    guard byteCount + key.utf8.count <= Self.maximumByteCount else {
      throw CofferError.notEncodable(
        collection: collection, key: key, reason: "it is larger than \(Self.maximumByteCount) bytes")
    }
  }
}

// MARK: - Creating mutations

/// All values are encoded here, by the rules of their collection.
extension DatabaseCore {
  @inline(__always)
  package func setting<Object: Encodable>(_ object: Object, _ key: String, in collection: String) throws -> Mutation {
    .set(HeldItem(object: try hold(object, key, in: collection), metadata: nil))
  }

  package func setting<Object: Encodable, Metadata: Encodable>(
    _ object: Object, metadata: Metadata?, dates: ItemDates = .none, _ key: String, in collection: String
  ) throws -> Mutation {
    .set(
      HeldItem(
        object: try hold(object, key, in: collection),
        metadata: try metadata.map { try encode(.metadata, $0, key, in: collection) }, dates: dates))
  }

  package func setting<Object: Encodable>(
    _ object: Object, dates: ItemDates, _ key: String, in collection: String
  ) throws -> Mutation {
    .set(HeldItem(object: try hold(object, key, in: collection), metadata: nil, dates: dates))
  }

  /// Sets values that are already serialized.
  package func settingSerialized(
    _ object: StoredValue, metadata: StoredValue?, dates: ItemDates, _ key: String, in collection: String
  ) throws -> Mutation {
    .set(
      HeldItem(
        object: HeldValue(try sanitize(.object, object, key, in: collection)),
        metadata: try metadata.map { try sanitize(.metadata, $0, key, in: collection) }, dates: dates))
  }

  package func replacing<Object: Encodable>(object: Object, _ key: String, in collection: String) throws -> Mutation {
    .replaced(Mutation.Replacement(object: try hold(object, key, in: collection)))
  }

  package func replacing<Metadata: Encodable>(metadata: Metadata?, _ key: String, in collection: String) throws
    -> Mutation
  {
    .replaced(
      Mutation.Replacement(metadata: .some(try metadata.map { try encode(.metadata, $0, key, in: collection) })))
  }

  /// Replaces the object or the metadata with a value that is already serialized.
  package func replacingSerialized(
    _ part: ItemPart, _ stored: StoredValue, _ key: String, in collection: String
  ) throws -> Mutation {
    let stored = try sanitize(part, stored, key, in: collection)
    return .replaced(part == .object ? .init(object: HeldValue(stored)) : .init(metadata: .some(stored)))
  }

  /// Encodes an object, if necessary.
  @inline(__always)
  func hold<Object: Encodable>(_ object: Object, _ key: String, in collection: String) throws -> HeldValue {
    if !hasAnyRules, let held = HeldValue(unencoded: object) { return held }
    return HeldValue(try encode(.object, object, key, in: collection))
  }
}

extension Mutation {
  /// Clears the metadata.
  static var replacedByNoMetadata: Mutation { .replaced(Replacement(metadata: .some(nil))) }
}

// MARK: - Applying mutations

extension Session {
  /// Applies `mutation` to a key, in one transaction from the sanitizers to the post-sanitizers.
  package func change(_ key: String, in collection: String, _ mutation: (DatabaseCore) throws -> Mutation) throws {
    try inTransaction {
      let mutation = try callingOut { try mutation(core) }
      try mutation.checkSize(key, in: collection)
      try apply(mutation, key, in: collection)
    }
  }

  /// Writes a mutation to the tables, and passes what was stored to the post-sanitizers.
  ///
  /// Whatever a program sets, replaces or removes by its key goes through here. These do not:
  ///
  /// - collections that are cleared or erased as a whole, for which no key is asked;
  /// - touches, which change nothing;
  /// - what the library does itself because of a change that did: other names of a renamed setting follow, expired items go, values
  ///   are sealed or opened with their collection;
  /// - what a fleet pulls, which was checked where it was set.
  func apply(_ mutation: Mutation, _ key: String, in collection: String) throws {
    if core.options.checksDeclarations || settingRules != nil {
      try requireSettable(mutation, key, in: collection)
    }
    switch mutation {
    case .set(let item):
      try set(item, key, in: collection)
      if core.hasAnyRules { try didSet(item.object.stored, item.metadata, key, in: collection) }
    case .removed:
      try remove(key, in: collection)
    case .replaced(let new):
      if let object = new.object, let metadata = new.metadata {
        // Both values in one update.
        guard let item = try storedItem(key, in: collection) else { return }
        return try apply(
          .set(HeldItem(object: object, metadata: metadata, dates: item.dates)), key, in: collection)
      }
      if let object = new.object?.stored, try replace(.object, object, key, in: collection) {
        try didSet(object, nil, key, in: collection)
      }
      if let metadata = new.metadata, try replace(.metadata, metadata, key, in: collection) {
        try didSet(nil, metadata, key, in: collection)
      }
    }
  }

  /// Passes what was stored to the post-sanitizers.
  private func didSet(_ object: StoredValue?, _ metadata: StoredValue?, _ key: String, in collection: String) throws {
    guard let rules = core.rules(of: collection) else { return }
    func report(_ sanitizer: CollectionRules.PostSanitizer?, _ part: ItemPart, _ stored: StoredValue?) throws {
      guard let sanitizer, let stored else { return }
      let value = try core.value(part, stored, key, in: collection)
      callingOut { sanitizer(collection, key, value) }
    }
    try report(rules.objectPostSanitizer, .object, object)
    try report(rules.metadataPostSanitizer, .metadata, metadata)
  }
}
