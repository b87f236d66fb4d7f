import Coffer

extension ConnectionProxy {
  /// Another name for `discardPendingChanges(forKey:inCollection:)`.
  ///
  /// - Throws: `CofferError.closed`.
  public func resetObject(forKey key: String, inCollection collection: String = "") throws {
    try discardPendingChanges(forKey: key, inCollection: collection)
  }

  /// Another name for `discardPendingChanges()`.
  ///
  /// - Throws: `CofferError.closed`.
  public func reset() throws {
    try discardPendingChanges()
  }

  /// Sets `fetchedCollectionsFilter` and discards all changes that no flush has taken yet, in one step.
  ///
  /// - Throws: `CofferError.closed`.
  public func abortAndReset(_ filter: CollectionFilter?) throws {
    try discardPendingChanges(filter: filter)
  }
}

extension ConnectionProxy {
  /// A connection for the program's own read transactions.
  ///
  /// The proxy itself reads through another connection, so whatever is done here, even a long transaction or a pinned
  /// snapshot, neither delays reads through the proxy nor makes them stale.
  public var readOnlyConnection: Connection { reader }

  /// The connection used for flushes.
  ///
  /// The program can use it too: changes set before a write is queued on it are written before that write, later ones after
  /// it.
  public var readWriteConnection: Connection { writer }

  /// Creates a proxy with connections of `database`; nil for one of its own.
  ///
  /// - Throws: `CofferError.closed` or `.usedAfterFork`.
  public convenience init(
    database: Database, readOnlyConnection: Connection? = nil, readWriteConnection: Connection? = nil,
    flushPolicy: FlushPolicy = .immediately
  ) throws {
    try self.init(
      database: database, reader: readOnlyConnection, writer: readWriteConnection, flushPolicy: flushPolicy)
  }
}

extension CollectionFilter {
  /// Allows only these collections, as `only(_:)` does; nil allows none.
  public static func whitelist(_ collections: [String]?) -> CollectionFilter { only(collections ?? []) }

  /// Allows all collections except these, as `except(_:)` does; nil allows all.
  public static func blacklist(_ collections: [String]?) -> CollectionFilter { except(collections ?? []) }
}
