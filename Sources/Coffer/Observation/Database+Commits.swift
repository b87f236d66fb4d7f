extension Database {
  /// The commits that become visible from now on, including those of other processes, in order, for `for await`.
  ///
  /// If a consumer falls behind, commits are merged, but no changed key is missed. While commits cannot be followed,
  /// ``ConnectionProxy/errors`` says why.
  ///
  /// ```swift
  /// for await commit in try database.commits(inCollection: "ui") {
  ///   print(commit.changedKeys(inCollection: "ui"))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - collection: Restricts this to commits that change this collection; nil for all, or, with a key or a prefix, for the
  ///     default collection.
  ///   - key: Restricts this to commits that change this key of the collection.
  ///   - prefix: Restricts this to commits that change a key of the collection with this prefix.
  /// - Throws: `CofferError.closed`, `.inputOutput` and similar errors.
  public func commits(
    inCollection collection: String? = nil, key: String? = nil, prefix: String? = nil
  ) throws -> EventSequence<Commit> {
    let collection = collection ?? (key == nil && prefix == nil ? nil : "")
    let buffer = MergingBuffer<Commit> { $0.merged(with: $1) }
    let registration = try CommitRegistration(core.feed) { [weak buffer] notification in
      if let collection {
        guard notification.concerns(collection, key: key, prefix: prefix) else { return }
      }
      buffer?.add(notification)
    } onClose: { [weak buffer] in
      buffer?.finish()
    }
    buffer.attach(registration)
    return EventSequence(buffer)
  }

  /// Calls `handler` for every commit that becomes visible from now on, including those of other processes, in order.
  ///
  /// The handler runs on a queue of the database, one call at a time; a slow call delays the next ones. While commits cannot
  /// be followed, ``ConnectionProxy/errors`` says why.
  ///
  /// - Returns: A registration; keep it as long as the handler should be called.
  /// - Throws: `CofferError.closed`, `.inputOutput` and similar errors.
  public func onCommit(_ handler: @escaping @Sendable (Commit) -> Void) throws -> CommitRegistration {
    try checkUsable()
    return try CommitRegistration(core.feed, handler, onClose: {})
  }

  /// The same, for a listener that is notified why commits cannot be followed, once, and with nil when they can.
  package func onCommit(
    _ handler: @escaping @Sendable (Commit) -> Void, onTrouble: @escaping @Sendable (CofferError?) -> Void
  ) throws -> CommitRegistration {
    try checkUsable()
    return try CommitRegistration(core.feed, handler, onTrouble: onTrouble, onClose: {})
  }

  /// Returns once handlers have had every commit that is visible now, those of this process included.
  package func deliverCommits() { core.feed.deliver() }
}

extension Commit {
  fileprivate func concerns(_ collection: String, key: String?, prefix: String?) -> Bool {
    if let key { return concerns(key: key, inCollection: collection) }
    guard let prefix else { return concerns(collection: collection) }
    return isCleared(collection) || isUnlisted(collection)
      || changedKeys(inCollection: collection).contains { $0.utf8.starts(with: prefix.utf8) }
  }
}
