/// Keeps a handler of commits registered; it ends with this object, or with `cancel()`.
public final class CommitRegistration: Sendable {
  private let feed: CommitFeed
  private let id: UInt64

  init(_ feed: CommitFeed, _ handler: @escaping CommitFeed.Handler, onClose: @escaping @Sendable () -> Void) throws {
    self.feed = feed
    id = try CofferError.translating { try feed.listen(handler, onClose: onClose) }
  }

  /// Ends the registration.
  ///
  /// A call of the handler that is under way goes on.
  public func cancel() {
    feed.stopListening(id)
  }

  deinit {
    cancel()
  }
}

extension Database {
  /// The commits that become visible from now on, those of other processes included, in their order, for `for await`.
  ///
  /// A consumer that falls behind gets several commits as one: that a key changed is never lost.
  ///
  /// ```swift
  /// for await commit in try database.commits(inCollection: "ui") {
  ///   print(commit.changedKeys(inCollection: "ui"))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - collection: Only commits that change something in this collection; nil for all, or with a key or a prefix for the
  ///     default collection.
  ///   - key: Only those that change this key of the collection.
  ///   - prefix: Only those that change a key of the collection with this beginning.
  /// - Throws: `CofferError.closed`, `.inputOutput` and their like.
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

  /// Calls `handler` for every commit that becomes visible from now on, those of other processes included, in their order.
  ///
  /// The handler runs on a queue of the database, one call at a time; what takes long holds up the next ones.
  ///
  /// - Returns: What keeps the handler registered; hold on to it.
  /// - Throws: `CofferError.closed`, `.inputOutput` and their like.
  public func onCommit(_ handler: @escaping @Sendable (Commit) -> Void) throws -> CommitRegistration {
    try checkUsable()
    return try CommitRegistration(core.feed, handler, onClose: {})
  }
}

extension Commit {
  fileprivate func concerns(_ collection: String, key: String?, prefix: String?) -> Bool {
    if let key { return hasChange(forKey: key, inCollection: collection) }
    guard let prefix else { return hasChange(inCollection: collection) }
    return didClear(collection: collection) || isUnlisted(collection: collection)
      || changedKeys(inCollection: collection).contains { $0.utf8.starts(with: prefix.utf8) }
  }
}
