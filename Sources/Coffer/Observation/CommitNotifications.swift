import CofferCrypto

/// Commits as they happen, for `for await`; see ``Database/commits(inCollection:key:prefix:)``.
///
/// A consumer that falls behind gets several commits as one: which one is lost, that a key changed never is.
public struct CommitNotifications: AsyncSequence, Sendable {
  /// What changed.
  public typealias Element = CommitNotification
  private let buffer: CommitBuffer

  init(_ buffer: CommitBuffer) {
    self.buffer = buffer
  }

  /// Waits for commits, one after another.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let buffer: CommitBuffer

    /// The next commit; nil when the database was closed, or the task cancelled.
    public mutating func next() async -> CommitNotification? {
      await buffer.next()
    }

    /// The next commit; nil when the database was closed, or the task cancelled.
    public mutating func next(isolation: isolated (any Actor)?) async -> CommitNotification? {
      await buffer.next()
    }
  }

  /// Makes the iterator; all iterators of one sequence share its commits.
  public func makeAsyncIterator() -> Iterator {
    Iterator(buffer: buffer)
  }
}

/// The commits that a consumer has not taken yet, and the registration that brings them.
final class CommitBuffer: Sendable {
  /// More commits than this that nobody takes become one.
  private static let maximumCount = 64

  private struct State {
    var waiting: [CommitNotification] = []
    var consumers: [CheckedContinuation<CommitNotification?, Never>] = []
    var isFinished = false
    var registration: CommitRegistration?
  }

  private let state = Lock(State())

  func attach(_ registration: CommitRegistration) {
    state.withLock { $0.registration = registration }
  }

  func add(_ notification: CommitNotification) {
    let consumer = state.withLock { state -> CheckedContinuation<CommitNotification?, Never>? in
      guard !state.isFinished else { return nil }
      if !state.consumers.isEmpty { return state.consumers.removeFirst() }
      state.waiting.append(notification)
      if state.waiting.count > Self.maximumCount {
        state.waiting[0] = state.waiting[0].merged(with: state.waiting.remove(at: 1))
      }
      return nil
    }
    consumer?.resume(returning: notification)
  }

  func finish() {
    let consumers = state.withLock { state in
      defer { state.consumers = [] }
      state.isFinished = true
      state.registration = nil
      return state.consumers
    }
    for consumer in consumers { consumer.resume(returning: nil) }
  }

  func next() async -> CommitNotification? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let immediate = state.withLock { state -> CommitNotification?? in
          if !state.waiting.isEmpty { return .some(state.waiting.removeFirst()) }
          if state.isFinished || Task.isCancelled { return .some(nil) }
          state.consumers.append(continuation)
          return nil
        }
        if let immediate { continuation.resume(returning: immediate) }
      }
    } onCancel: {
      finish()
    }
  }
}

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
  /// The commits that become visible from now on, those of other processes included, in their order.
  ///
  /// ```swift
  /// for await commit in try database.commits(inCollection: "ui") {
  ///   print(commit.changedKeys(inCollection: "ui"))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - collection: Only commits that change something in this collection.
  ///   - key: Only those that change this key of the collection.
  ///   - prefix: Only those that change a key of the collection with this beginning.
  /// - Throws: `CofferError.closed`, `.inputOutput` and their like.
  public func commits(
    inCollection collection: String? = nil, key: String? = nil, prefix: String? = nil
  ) throws -> CommitNotifications {
    precondition(collection != nil || (key == nil && prefix == nil), "Name the collection of the key.")
    let buffer = CommitBuffer()
    let registration = try CommitRegistration(core.feed) { [weak buffer] notification in
      if let collection {
        guard notification.concerns(collection, key: key, prefix: prefix) else { return }
      }
      buffer?.add(notification)
    } onClose: { [weak buffer] in
      buffer?.finish()
    }
    buffer.attach(registration)
    return CommitNotifications(buffer)
  }

  /// Calls `handler` for every commit that becomes visible from now on, those of other processes included, in their order.
  ///
  /// The handler runs on a queue of the database, one call at a time; what takes long holds up the next ones.
  ///
  /// - Returns: What keeps the handler registered; hold on to it.
  /// - Throws: `CofferError.closed`, `.inputOutput` and their like.
  public func onCommit(_ handler: @escaping @Sendable (CommitNotification) -> Void) throws -> CommitRegistration {
    try checkUsable()
    return try CommitRegistration(core.feed, handler, onClose: {})
  }
}

extension CommitNotification {
  fileprivate func concerns(_ collection: String, key: String?, prefix: String?) -> Bool {
    if let key { return hasChange(forKey: key, inCollection: collection) }
    guard let prefix else { return hasChange(inCollection: collection) }
    return didClear(collection: collection) || isUnlisted(collection: collection)
      || changedKeys(inCollection: collection).contains { $0.utf8.starts(with: prefix.utf8) }
  }
}
