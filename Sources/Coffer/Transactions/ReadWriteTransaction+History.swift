extension ReadWriteTransaction {
  // MARK: History

  /// Sets how many earlier values of its items a collection keeps, and how long; nil keeps none from then on.
  ///
  /// From then on, each commit that changes or removes an item keeps the previously committed value, with its metadata,
  /// version and time. The limits are stored, and apply to every process; setting the same limits again changes nothing.
  ///
  /// ```swift
  /// try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "accounts") }
  /// ```
  ///
  /// Values beyond the limits are dropped with the next change of an item of the collection, or within 64 commits. With nil,
  /// existing values stay, until ``eraseHistory(ofCollection:)``, or new limits drop them.
  public borrowing func setHistoryLimits(_ limits: HistoryLimits?, forCollection collection: String) throws {
    try session.setHistoryLimits(limits, of: collection)
  }

  /// Erases the earlier values of a collection for good; the change log keeps that it was done, when and by whom.
  ///
  /// The limits stay: from then on, values are kept as before.
  public borrowing func eraseHistory(ofCollection collection: String) throws {
    try session.eraseHistory(of: collection)
  }

  /// Sets a key to an earlier value with its metadata, as a new change; works for a removed key too.
  ///
  /// ```swift
  /// let earlier = try transaction.history(forKey: "password", inCollection: "accounts")
  /// if let last = earlier.first {
  ///   try transaction.restoreObject(forKey: "password", inCollection: "accounts", version: last.version)
  /// }
  /// ```
  ///
  /// The replaced value becomes history in its turn. Restoring the current version changes nothing. An expiry still in the
  /// future is restored with the value; one in the past is not, since the value would be gone again at once. History does
  /// not keep due dates.
  ///
  /// - Throws: `CofferError.versionNotFound`, with nothing changed; the errors of a sanitizer.
  public borrowing func restoreObject(
    forKey key: String, inCollection collection: String = "", version: CommitNumber
  ) throws {
    let session = session
    try session.inTransaction {
      guard let item = try session.historicItem(version, key, in: collection) else {
        // 0 is not a version; it stands for an absent key.
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
