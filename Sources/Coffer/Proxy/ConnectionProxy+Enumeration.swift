extension ConnectionProxy {
  // MARK: Lists and counts

  /// The names of the collections that have items, pending ones included, in the order of their UTF-8 bytes.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func allCollections() throws -> [String] {
    var names = Set<ByteString>()
    let candidates = try state.readCommitted { session, _ in
      try session.collectionNames() + state.lock.withShared { state.pendingCollections }
    }
    for name in candidates where try !allKeys(inCollection: name).isEmpty { names.insert(ByteString(name)) }
    return names.sorted().map(\.string)
  }

  /// The keys of a collection, pending ones included, in the order of their UTF-8 bytes.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func allKeys(inCollection collection: String = "", within range: KeyRange = .all) throws -> [String] {
    try items(collection, range).map(\.key)
  }

  /// How many keys a collection has, pending ones included.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func numberOfKeys(inCollection collection: String = "") throws -> Int {
    try items(collection, .all).count
  }

  /// All objects of a collection with their keys, pending ones included, as they were at one moment, in the order of the keys'
  /// UTF-8 bytes.
  ///
  /// ```swift
  /// for (key, value) in try settings.objects(inCollection: "ui", as: Value.self) { print(key, value.kind) }
  /// ```
  ///
  /// No dictionary, which would lose one of two keys that Swift calls equal, `"é"` in one scalar and in two.
  ///
  /// - Throws: `CofferError.notDecodable` when one of them is of another type; `.closed`, `.damaged` or `.inputOutput`.
  public func objects<Object: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self
  ) throws -> [(key: String, object: Object)] {
    try items(collection, range).map { ($0.key, try decode($0.item, $0.key, in: collection)) }
  }

  /// Hands `body` each key of a collection with its object, pending ones included, as they were at one moment, in the order
  /// of the keys' UTF-8 bytes.
  ///
  /// `body` may change the proxy; it ends the enumeration by setting `stop`.
  ///
  /// - Throws: As `objects(inCollection:within:as:)`; what `body` throws.
  public func enumerateKeysAndObjects<Object: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    _ body: (_ key: String, _ object: Object, _ stop: inout Bool) throws -> Void
  ) throws {
    var stop = false
    for (key, item) in try items(collection, range) where !stop {
      try body(key, decode(item, key, in: collection), &stop)
    }
  }

  private func items(_ collection: String, _ range: KeyRange) throws -> [(key: String, item: HeldItem)] {
    state.askFetchFilter(collection)
    return try state.visibleItems(of: collection, range)
  }
}

extension ProxyState {
  /// The collections that pending changes concern.
  var pendingCollections: [String] {
    batches.flatMap { $0.items.map { $0._withUnsafeGuaranteedRef { $0.collection.name } } }
  }

  /// The items of a collection as they show at one moment, in the order of their keys.
  func visibleItems(of name: String, _ range: KeyRange) throws -> [(key: String, item: HeldItem)] {
    try readCommitted { session, last in
      // The pending changes that belong to this snapshot: nothing was settled beyond it.
      let overlay = lock.withExclusive { () -> Overlay? in
        guard isUsable(last) else { return nil }
        let collection = collection(name)
        var changes: [ByteString: PendingChange] = [:]
        forEachItem(of: collection) { item in
          if let change = item.pendingChange() { changes[ByteString(item.key)] = change }
        }
        return Overlay(
          changes: changes, showsCommitted: collection.clearings.isEmpty && !(collection.isHidden ?? false))
      }
      guard var overlay else { return nil }
      var items: [(key: String, item: HeldItem)] = []
      if overlay.showsCommitted, let id = try session.collectionID(name) {
        let cursor = Cursor(connection: session.connection, collection: id, range: range, columns: .rows)
        while try cursor.advance() {
          let key = cursor.key
          let change = overlay.changes.removeValue(forKey: ByteString(key))
          if let item = ProxyItem.result(of: change, on: .item(try cursor.item())).item { items.append((key, item)) }
        }
      }
      // What is pending and not committed yet; a replacement of nothing is nothing.
      let added = overlay.changes.compactMap { key, change -> (key: String, item: HeldItem)? in
        guard range.contains(key.string), case .set(let item) = change else { return nil }
        return (key.string, item)
      }
      guard !added.isEmpty else { return items }
      return (items + added).sorted { ByteString($0.key) < ByteString($1.key) }
    }
  }

  private struct Overlay {
    var changes: [ByteString: PendingChange]
    let showsCommitted: Bool
  }
}

extension KeyRange {
  fileprivate func contains(_ key: String) -> Bool {
    guard !key.utf8.lexicographicallyPrecedes(lower) else { return false }
    return upper.map { key.utf8.lexicographicallyPrecedes($0) } ?? true
  }
}
