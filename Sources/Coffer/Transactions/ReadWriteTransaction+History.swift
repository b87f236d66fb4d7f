extension ReadWriteTransaction {
  // MARK: History

  /// Says how many earlier values the items of a collection keep, and how long, from now on; nil keeps none, and drops
  /// what there is.
  ///
  /// Each commit that changes or removes an item then keeps the value that was committed before, with its metadata,
  /// version and time. The limits stand in the store, for every process; the ones that are there already change nothing.
  ///
  /// ```swift
  /// try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "accounts") }
  /// ```
  ///
  /// Removing the collection as a whole removes its limits, too, for nothing is to stay of it: say them at each start of
  /// the program. What is older than the limits allow goes with the next change of an item of the collection, or within 64
  /// commits.
  public borrowing func setHistoryLimits(_ limits: HistoryLimits?, forCollection collection: String) throws {
    try session.setHistoryLimits(limits, of: collection)
  }

  /// Sets a key to an earlier value with its metadata, as a new change; also one that was removed.
  ///
  /// ```swift
  /// let earlier = try transaction.history(forKey: "password", inCollection: "accounts")
  /// if let last = earlier.first {
  ///   try transaction.restoreObject(forKey: "password", inCollection: "accounts", version: last.version)
  /// }
  /// ```
  ///
  /// What the key held until now becomes history in its turn. Restoring the present version changes nothing. An expiry that is
  /// still ahead comes back with the value; one that has passed does not, or the value would be gone again at once. History
  /// keeps no due dates.
  ///
  /// - Throws: `CofferError.versionNotFound` with nothing changed; what a sanitizer throws.
  public borrowing func restoreObject(
    forKey key: String, inCollection collection: String = "", version: Int64
  ) throws {
    let session = session
    try session.inTransaction {
      guard let item = try session.historicItem(version, key, in: collection) else {
        // 0 is no version, but that of an absent key.
        guard version > 0, try session.version(key, in: collection) == version else {
          throw CofferError.versionNotFound(collection: collection, key: key, version: version)
        }
        return
      }
      try session.change(key, in: collection) { core in
        try core.settingSerialized(
          core.opened(item.object, key, in: collection),
          metadata: item.metadata.map { try core.opened(.metadata, $0, key, in: collection) },
          dates: session.isExpired(item.dates) ? .none : item.dates, key, in: collection)
      }
    }
  }
}
