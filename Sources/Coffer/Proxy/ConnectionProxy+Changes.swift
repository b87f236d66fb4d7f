extension ConnectionProxy {
  /// Changes as they happen, for `for await`; see ``ConnectionProxy/changes(inCollection:key:prefix:)``.
  ///
  /// If a consumer falls behind, events are merged: intermediate values may be missed, but no changed key is.
  public typealias Changes = EventSequence<ChangeEvent>

  /// The visible changes through this proxy from now on.
  ///
  /// ```swift
  /// for await event in try settings.changes(inCollection: "ui", prefix: "window.") {
  ///   for change in event.changes { print(change.key, try change.object(as: Int.self) ?? 0) }
  /// }
  /// ```
  ///
  /// A change made through this proxy is reported when it becomes visible, which is at once, and not again when it is
  /// committed; discarding it is reported again, with the value that shows instead. Changes by other connections and
  /// processes are reported when they are committed, unless a pending change hides them. Changes made together form one
  /// event; changes in quick succession may be merged into one. Setting a filter is not reported.
  ///
  /// - Parameters:
  ///   - collection: Restricts changes to this collection; nil for all, or, with a key or a prefix, for the default
  ///     collection.
  ///   - key: Restricts changes to this key of the collection.
  ///   - prefix: Restricts changes to keys of the collection with this prefix.
  /// - Throws: `CofferError.closed`, `.inputOutput` and similar errors.
  public func changes(
    inCollection collection: String? = nil, key: String? = nil, prefix: String? = nil
  ) throws -> Changes {
    let collection = collection ?? (key == nil && prefix == nil ? nil : "")
    let interest = ChangeInterest(
      collections: collection.map { [ByteString($0)] }, keys: key.map { [ByteString($0)] }, prefix: prefix)
    return try events(interest, merge: { $0.merged(with: $1) }, { $0 })
  }

  /// The visible changes in several collections through this proxy from now on, in one stream.
  ///
  /// ```swift
  /// for await event in try settings.changes(inCollections: ["ui", "network"]) {
  ///   for change in event.changes { print(change.collection, change.key) }
  /// }
  /// ```
  ///
  /// Changes made together in several of them form one event; see ``changes(inCollection:key:prefix:)``.
  ///
  /// - Throws: As ``changes(inCollection:key:prefix:)``.
  public func changes(inCollections collections: [String]) throws -> Changes {
    let interest = ChangeInterest(collections: Set(collections.map { ByteString($0) }))
    return try events(interest, merge: { $0.merged(with: $1) }, { $0 })
  }

  /// The visible changes from now on, mapped by `transform`; those it maps to nil are left out.
  func events<Element>(
    _ interest: ChangeInterest, merge: @escaping @Sendable (_ earlier: Element, _ later: Element) -> Element,
    _ transform: @escaping @Sendable (ChangeEvent) -> Element?
  ) throws -> EventSequence<Element> {
    let buffer = MergingBuffer(merge: merge)
    let registration = try listen(interest) { [weak buffer] event in
      if let element = transform(event) { buffer?.add(element) }
    } finish: { [weak buffer] in
      buffer?.finish()
    }
    buffer.attach(registration)
    return EventSequence(buffer)
  }

  /// Passes the visible changes from now on to `receive`, one after another, until the returned object is released.
  func listen(
    _ interest: ChangeInterest, _ receive: @escaping @Sendable (ChangeEvent) -> Void,
    finish: @escaping @Sendable () -> Void = {}
  ) throws -> any Sendable {
    // Commits made by others so far are not to be reported.
    try state.catchUp()
    let registration = try ChangeRegistration(state, interest, receive, finish: finish)
    // So that the first change comes with its previous value.
    try state.prepareForListening(interest.collections ?? [])
    return registration
  }
}

/// Keeps a listener registered, and commits of others observed.
private final class ChangeRegistration: Sendable {
  private let state: ProxyState
  private let number: UInt64
  private let commits: CommitRegistration

  init(
    _ state: ProxyState, _ interest: ChangeInterest,
    _ receive: @escaping @Sendable (ConnectionProxy.ChangeEvent) -> Void, finish: @escaping @Sendable () -> Void
  ) throws {
    self.state = state
    // What cannot be read now is reported with the next commit, or the next read.
    commits = try CommitRegistration(state.core.feed, { [weak state] in try? state?.follow($0) }, onClose: finish)
    number = state.listeners.add(interest, receive, finish: finish)
  }

  deinit {
    state.listeners.remove(number)
  }
}

extension ProxyState {
  /// Reads the newest snapshot, the names of collections (which may be removed later), and the small ones of `collections`.
  func prepareForListening(_ collections: Set<ByteString>) throws {
    try readCommitted { session, last -> Void? in
      try core.commits.learnNames(session.connection)
      for name in collections {
        let known = lock.withExclusive { items.collection(name.string) }
        if lock.withShared({ known.isComplete }) { continue }
        guard try loadAll(of: known, session, last) else { return nil }
      }
      return ()
    }
  }
}
