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

extension CollectionFilter {
  /// Allows only these collections, as `only(_:)` does; nil allows none.
  public static func whitelist(_ collections: [String]?) -> CollectionFilter { only(collections ?? []) }

  /// Allows all collections except these, as `except(_:)` does; nil allows all.
  public static func blacklist(_ collections: [String]?) -> CollectionFilter { except(collections ?? []) }
}
