extension ConnectionProxy {
  // MARK: Lists and counts

  /// The names of the collections that have items, including pending ones, in the order of their UTF-8 bytes.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func allCollections() throws -> [String] {
    try state.visibleCollections()
  }

  /// The keys of a collection, including pending ones, in the order of their UTF-8 bytes.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func allKeys(inCollection collection: String = "", within range: KeyRange = .all) throws -> [String] {
    state.askFetchFilter(collection)
    return try state.visibleKeys(of: collection, range)
  }

  /// The number of keys in a collection, including pending ones.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func numberOfKeys(inCollection collection: String = "") throws -> Int {
    try allKeys(inCollection: collection).count
  }

  /// All objects of a collection with their keys, including pending ones, as of one moment, in the order of the keys' UTF-8
  /// bytes.
  ///
  /// ```swift
  /// for (key, value) in try settings.objects(inCollection: "ui", as: Value.self) { print(key, value.kind) }
  /// ```
  ///
  /// The result is not a dictionary, which would lose one of two keys that Swift considers equal, such as `"é"` as one
  /// scalar and as two.
  ///
  /// - Throws: `CofferError.notDecodable` when one of them is of another type; `.closed`, `.damaged` or `.inputOutput`.
  public func objects<Object: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self
  ) throws -> [(key: String, object: Object)] {
    try items(collection, range).map { ($0.key, try decode($0.item, $0.key, in: collection)) }
  }

  /// Passes each key of a collection with its object to `body`, including pending ones, as of one moment, in the order of
  /// the keys' UTF-8 bytes.
  ///
  /// `body` may change the proxy; it ends the enumeration by setting `stop`.
  ///
  /// - Throws: As `objects(inCollection:within:as:)`; the errors of `body`.
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
    return try state.visibleItems(of: [collection], range)[0].map { ($0.key, try $0.item.get()) }
  }
}

extension ProxyState {
  /// The collections that have visible items at one moment, in the order of their names.
  ///
  /// It passes once through all pending changes, and reads no more committed keys than pending changes remove.
  func visibleCollections() throws -> [String] {
    while true {
      var unasked: [String] = []
      let names = try readCommitted { session, last -> Set<ByteString>? in
        let committed = try session.collectionNames()
        var names: Set<ByteString> = []
        var doubtful: [(name: String, removed: Set<ByteString>)] = []
        let isUsable = lock.withExclusive { () -> Bool in
          guard self.isUsable(last) else { return false }
          var removed: [ObjectIdentifier: Set<ByteString>] = [:]
          items.forEach { item in
            settle(item)
            switch item.pendingChange() {
            case let change? where change.hasExpired(at: session.transaction.time): break
            case .set: names.insert(ByteString(item.collection.name))
            case .removed: removed[ObjectIdentifier(item.collection), default: []].insert(ByteString(item.key))
            case .replaced, nil: break
            }
          }
          for name in committed {
            let collection = items.collection(name)
            if collection.isHidden == nil { unasked.append(name) }
            guard collection.isHidden == false, collection.clearings.isEmpty else { continue }
            if let removed = removed[ObjectIdentifier(collection)] {
              doubtful.append((name, removed))
            } else {
              names.insert(ByteString(name))
            }
          }
          return true
        }
        guard isUsable else { return nil }
        for (name, removed) in doubtful where !names.contains(ByteString(name)) {
          guard let stored = try session.storedCollection(name) else { continue }
          let cursor = Cursor(
            connection: session.connection, collection: stored.id, isSealed: stored.isSealed, range: .all,
            columns: .keys, at: session.transaction.time)
          while try cursor.advance() {
            guard removed.contains(ByteString(cursor.key)) else {
              names.insert(ByteString(name))
              break
            }
          }
        }
        return names
      }
      if unasked.isEmpty { return names.sorted().map(\.string) }
      for name in unasked { askFetchFilter(name) }
    }
  }

  /// The visible items of some collections at one moment, in the order of their keys; for an unreadable item, the error.
  func visibleItems(
    of names: [String], _ range: KeyRange
  ) throws -> [[(key: String, item: Result<HeldItem, any Error>)]] {
    try visibleRows(of: names, range, .rows) { cursor, change in
      do {
        let item = try CofferError.translating {
          switch change {
          // The previous value does not matter.
          case .set, .removed: ProxyItem.result(of: change, on: .absent).item
          case .replaced, nil: ProxyItem.result(of: change, on: .item(try cursor.item())).item
          }
        }
        return item.map { (cursor.key, .success($0)) }
      } catch {
        return (cursor.key, .failure(error))
      }
    } added: {
      ($0, .success($1))
    }
  }

  /// The visible keys of a collection at one moment, in order.
  func visibleKeys(of name: String, _ range: KeyRange) throws -> [String] {
    try visibleRows(of: [name], range, .keys) { cursor, change in
      if case .removed? = change { nil } else { (cursor.key, ()) }
    } added: { key, _ in
      (key, ())
    }[0].map(\.key)
  }

  /// The visible rows of each collection.
  ///
  /// - Parameters:
  ///   - shown: The visible form of a committed row, given its pending change; nil if it is not visible.
  ///   - added: The visible form of a pending item that is not committed.
  private func visibleRows<Element>(
    of names: [String], _ range: KeyRange, _ columns: Cursor.Columns,
    _ shown: (Cursor, Mutation?) throws -> (key: String, Element)?,
    added: (String, HeldItem) -> (key: String, Element)
  ) throws -> [[(key: String, Element)]] {
    try readCommitted { session, last in
      // Use the pending changes only if they match this snapshot: nothing later may have been settled.
      let overlays = lock.withExclusive { isUsable(last) ? names.map(overlay) : nil }
      guard let overlays else { return nil }
      return try zip(names, overlays).map { name, overlay in
        var overlay = overlay
        var rows: [(key: String, Element)] = []
        if overlay.showsCommitted, let stored = try session.storedCollection(name) {
          let cursor = Cursor(
            connection: session.connection, collection: stored.id, isSealed: stored.isSealed, range: range,
            columns: columns, at: session.transaction.time)
          while try cursor.advance() {
            let change = overlay.changes.isEmpty ? nil : overlay.changes.removeValue(forKey: ByteString(cursor.key))
            if change?.hasExpired(at: session.transaction.time) ?? false { continue }
            if let row = try shown(cursor, change) { rows.append(row) }
          }
        }
        // Pending items that are not committed yet; a replacement of an absent item has no effect.
        let rest = overlay.changes.compactMap { key, change -> (key: String, Element)? in
          guard range.contains(key.string), case .set(let item) = change,
            !change.hasExpired(at: session.transaction.time)
          else { return nil }
          return added(key.string, item)
        }
        guard !rest.isEmpty else { return rows }
        return (rows + rest).sorted { ByteString($0.key) < ByteString($1.key) }
      }
    }
  }

  /// The pending changes of a collection; called with the lock held.
  private func overlay(of name: String) -> Overlay {
    let collection = items.collection(name)
    var changes: [ByteString: Mutation] = [:]
    items.forEach(of: collection) { item in
      settle(item)
      if let change = item.pendingChange() { changes[ByteString(item.key)] = change }
    }
    return Overlay(changes: changes, showsCommitted: collection.clearings.isEmpty && !(collection.isHidden ?? false))
  }

  private struct Overlay {
    var changes: [ByteString: Mutation]
    let showsCommitted: Bool
  }
}

extension Mutation {
  /// Whether it sets an item that has expired already.
  fileprivate func hasExpired(at time: Int64) -> Bool {
    if case .set(let item) = self { item.dates.isExpired(at: time) } else { false }
  }
}

extension KeyRange {
  fileprivate func contains(_ key: String) -> Bool {
    guard !key.utf8.lexicographicallyPrecedes(lower) else { return false }
    return upper.map { key.utf8.lexicographicallyPrecedes($0) } ?? true
  }
}
