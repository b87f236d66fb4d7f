extension ConnectionProxy {
  /// Changes as they happen, for `for await`; see ``ConnectionProxy/changes(inCollection:key:prefix:)``.
  ///
  /// A consumer that falls behind gets several events as one: a value between may be lost, that a key changed never is.
  public typealias Changes = EventSequence<ChangeEvent>

  /// The changes that show through this proxy from now on.
  ///
  /// ```swift
  /// for await event in try settings.changes(inCollection: "ui", prefix: "window.") {
  ///   for change in event.changes { print(change.key, try change.object(as: Int.self) ?? 0) }
  /// }
  /// ```
  ///
  /// A change made through this proxy is announced when it shows, which is at once, not again when it is committed; one
  /// that is taken back by a reset is announced again, with the value that came back. Changes by other connections and
  /// processes are announced when they are committed, unless a pending change hides them. What is changed together makes
  /// one event; so may what is changed in quick succession. Setting a filter is not announced.
  ///
  /// - Parameters:
  ///   - collection: Only changes in this collection; nil for all, or with a key or a prefix for the default collection.
  ///   - key: Only changes of this key of the collection.
  ///   - prefix: Only changes of keys of the collection with this beginning.
  /// - Throws: `CofferError.closed`, `.inputOutput` and their like.
  public func changes(
    inCollection collection: String? = nil, key: String? = nil, prefix: String? = nil
  ) throws -> Changes {
    let collection = collection ?? (key == nil && prefix == nil ? nil : "")
    let interest = ChangeEvent.Interest(
      collections: collection.map { [ByteString($0)] }, key: key.map(ByteString.init), prefix: prefix)
    return try events(interest, merge: { $0.merged(with: $1) }, { $0 })
  }

  /// The changes in several collections that show through this proxy from now on, in one stream.
  ///
  /// ```swift
  /// for await event in try settings.changes(inCollections: ["ui", "network"]) {
  ///   for change in event.changes { print(change.collection, change.key) }
  /// }
  /// ```
  ///
  /// What was changed together in several of them makes one event; see ``changes(inCollection:key:prefix:)``.
  ///
  /// - Throws: As ``changes(inCollection:key:prefix:)``.
  public func changes(inCollections collections: [String]) throws -> Changes {
    let interest = ChangeEvent.Interest(collections: Set(collections.map { ByteString($0) }))
    return try events(interest, merge: { $0.merged(with: $1) }, { $0 })
  }

  /// What `transform` makes of the changes that show from now on, without those of which it makes nothing.
  func events<Element>(
    _ interest: ChangeEvent.Interest, merge: @escaping @Sendable (_ earlier: Element, _ later: Element) -> Element,
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

  /// Hands the changes that show from now on to `receive`, one after another, as long as what this returns is kept.
  func listen(
    _ interest: ChangeEvent.Interest, _ receive: @escaping @Sendable (ChangeEvent) -> Void,
    finish: @escaping @Sendable () -> Void = {}
  ) throws -> any Sendable {
    // What others have committed until now is nothing to be announced.
    try state.catchUp()
    let registration = try ChangeRegistration(state, interest, receive, finish: finish)
    // So that the first change comes with the value before it.
    try state.prepareForListening(interest.collections ?? [])
    return registration
  }
}

/// Keeps a listener registered, and the commits of others coming.
private final class ChangeRegistration: Sendable {
  private let state: ProxyState
  private let number: UInt64
  private let commits: CommitRegistration

  init(
    _ state: ProxyState, _ interest: ConnectionProxy.ChangeEvent.Interest,
    _ receive: @escaping @Sendable (ConnectionProxy.ChangeEvent) -> Void, finish: @escaping @Sendable () -> Void
  ) throws {
    self.state = state
    // What cannot be read now comes with the next commit, or the next read.
    commits = try CommitRegistration(state.core.feed, { [weak state] _ in try? state?.catchUp() }, onClose: finish)
    number = state.listeners.add(interest, receive, finish: finish)
  }

  deinit {
    state.listeners.remove(number)
  }
}

extension ProxyState {
  /// Knows the newest snapshot, the names of collections that may go, and those of `collections` whole that are small.
  func prepareForListening(_ collections: Set<ByteString>) throws {
    try readCommitted { session, last -> Void? in
      try core.commits.learnNames(session.connection)
      for name in collections {
        let known = lock.withExclusive { self.collection(name.string) }
        if lock.withShared({ known.isComplete }) { continue }
        guard try loadAll(of: known, session, last) else { return nil }
      }
      return ()
    }
  }

  /// Looks for commits of others, for those who listen.
  func catchUp() throws {
    try readCommitted { _, _ in () }
  }
}
