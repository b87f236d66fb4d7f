import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// Delivers commits to listeners in order, including those of other processes.
///
/// Without listeners it costs a writer one load. With the first listener it opens a connection of its own; it is woken by
/// our own commits and, through a `FileWatcher`, by those of others.
final class CommitFeed: Sendable {
  typealias Handler = @Sendable (Commit) -> Void
  /// Receives why commits cannot be followed at present, once; nil when they are again.
  typealias TroubleHandler = @Sendable (CofferError?) -> Void
  /// Makes a connection for reading the change log; of which of the successive stores at this path, at least.
  typealias Connect = @Sendable () throws -> (SQLiteConnection, storeGeneration: Int)
  /// Switches to the store that replaced another.
  typealias Follow = @Sendable (_ replaced: Store) throws -> Void

  private struct Listener {
    /// The last commit that it may already know.
    var start: CommitNumber
    let handler: Handler
    /// nil for one that leaves it to the report for the whole database.
    let onTrouble: TroubleHandler?
    let onClose: @Sendable () -> Void
  }

  private let path: String?
  private let commits: CommitLog
  private let expiries: Expiries
  private let connect: Connect
  private let follow: Follow
  private let report: @Sendable (CofferError) -> Void
  private let warn: @Sendable (String) -> Void
  private let queue = DispatchQueue(label: "coffer.commits")
  private let listenerCount = Atomic<Int>(0)
  private let isDrainQueued = Atomic<Bool>(false)
  private let reader = Reader()

  /// Unchecked: only `queue` touches it.
  private final class Reader: @unchecked Sendable {
    var connection: SQLiteConnection?
    /// Of the store that it is to.
    var storeGeneration = 0
    /// Kept while the connection is; nil before its first read.
    var counter: CommitCounter?
    var watcher: FileWatcher?
    /// Of the folders and links that lead to the store's folder.
    var wayWatcher: FileWatcher?
    /// Whether it was said that changes are polled for.
    var saysPolling = false
    var lastNumber: CommitNumber = 0
    /// How often the store was replaced, or rolled back, so that numbers began again.
    var generation = 0
    /// Whether the connection was closed, to be opened again: the store was replaced, which could not be followed yet, or it
    /// was read as an image, which is outdated.
    var mustReopen = false
    /// The files before the last attempt to do so, if it failed.
    var refused: StoreFiles?
    /// Why commits cannot be followed, as far as it was said.
    var trouble: CofferError?
    /// The next attempt, and how long to wait for the one after it.
    var retry: DispatchWorkItem?
    var pause = CommitFeed.shortestPause
    var listeners: [UInt64: Listener] = [:]
    var lastListener: UInt64 = 0
  }

  /// - Parameters:
  ///   - path: The path by which the store was opened, where commits of others and replacements are watched for; nil for
  ///     a store in memory.
  ///   - report: Receives why commits cannot be followed, once, if a listener does not receive it.
  init(
    path: String?, commits: CommitLog, expiries: Expiries, connect: @escaping Connect, follow: @escaping Follow,
    report: @escaping @Sendable (CofferError) -> Void, warn: @escaping @Sendable (String) -> Void
  ) {
    self.path = path
    self.commits = commits
    self.expiries = expiries
    self.connect = connect
    self.follow = follow
    self.report = report
    self.warn = warn
  }

  private static let queueKey = DispatchSpecificKey<ObjectIdentifier>()

  /// Runs `body` on the queue, where handlers run already.
  private func onQueue<Result>(_ body: () throws -> Result) rethrows -> Result {
    if DispatchQueue.getSpecific(key: Self.queueKey) == ObjectIdentifier(self) { return try body() }
    return try queue.sync(execute: body)
  }

  // MARK: For the writer

  /// Whether a writer has to report more than the change log holds.
  var isObserved: Bool { listenerCount.load(ordering: .acquiring) > 0 }

  /// Called after a commit has become visible.
  func didCommit() {
    guard isObserved else { return }
    wake()
  }

  /// Looks for commits, and for what has replaced the store, if there are listeners.
  func wake() {
    guard !isDrainQueued.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.async {
      self.isDrainQueued.store(false, ordering: .releasing)
      self.drain()
    }
  }

  // MARK: For listeners

  /// Passes every commit that becomes visible after this call to `handler`, in order, on the feed's queue.
  ///
  /// - Parameter onTrouble: Receives why commits cannot be followed, on the feed's queue; nil to leave it to the report for the
  ///   whole database.
  func listen(
    _ handler: @escaping Handler, onTrouble: TroubleHandler?, onClose: @escaping @Sendable () -> Void
  ) throws -> UInt64 {
    // Before the start is read, so that every later commit of ours comes with the details that are not in the log.
    listenerCount.add(1, ordering: .acquiringAndReleasing)
    do {
      return try onQueue {
        if reader.connection == nil, !reader.mustReopen { try start() }
        drain()
        reader.lastListener += 1
        reader.listeners[reader.lastListener] = Listener(
          start: reader.lastNumber, handler: handler, onTrouble: onTrouble, onClose: onClose)
        sayPolling()
        if let trouble = reader.trouble { onTrouble?(trouble) }
        return reader.lastListener
      }
    } catch {
      listenerCount.subtract(1, ordering: .acquiringAndReleasing)
      throw error
    }
  }

  /// Returns once the listeners have had every commit that was visible before.
  func deliver() { onQueue { drain() } }

  func stopListening(_ id: UInt64) {
    queue.async {
      guard self.reader.listeners.removeValue(forKey: id) != nil else { return }
      self.listenerCount.subtract(1, ordering: .acquiringAndReleasing)
      if self.reader.listeners.isEmpty { self.stop() }
    }
  }

  /// Keeps the details of our commits that are not in the log, for a long-lived read of this database.
  func retain() { listenerCount.add(1, ordering: .acquiringAndReleasing) }

  func release() { listenerCount.subtract(1, ordering: .acquiringAndReleasing) }

  /// Ends everything; called when the database closes.
  func close() {
    onQueue {
      listenerCount.subtract(reader.listeners.count, ordering: .acquiringAndReleasing)
      let listeners = reader.listeners.values
      reader.listeners = [:]
      stop()
      for listener in listeners { listener.onClose() }
    }
  }

  // MARK: Reading the log, on the queue

  private func start() throws {
    // Set only now: a queue with a specific value starts a thread when it is released.
    queue.setSpecific(key: Self.queueKey, value: ObjectIdentifier(self))
    // The watcher first, so that no commit is missed in between.
    try watch()
    let connection = try open()
    reader.lastNumber = try ChangeLog(connection: connection).lastNumber()
    try commits.learnNames(connection)
    try expiries.look(connection)
  }

  private func open() throws -> SQLiteConnection {
    let (connection, storeGeneration) = try connect()
    (reader.connection, reader.storeGeneration, reader.counter) = (connection, storeGeneration, nil)
    return connection
  }

  /// Watches what leads to the store's folder, and then that folder, so that an exchange in between is noticed, too.
  private func watch() throws {
    guard let path else { return }
    reader.wayWatcher = try FileWatcher(leadingToFolderOf: path, queue: queue) { [weak self] in
      // Other folders may be on the way now. There may be no folder at its end yet: then the way is watched on.
      try? self?.watch()
      self?.wake()
    }
    reader.watcher = try FileWatcher(path: path, queue: queue) { [weak self] in self?.wake() }
  }

  /// Warns once that changes are polled for, when listening has begun.
  private func sayPolling() {
    guard let path, let reason = reader.watcher?.pollingReason, !reader.saysPolling else { return }
    reader.saysPolling = true
    warn("\(path): \(reason). Changes by other processes are looked for four times a second.")
  }

  private func stop() {
    try? reader.connection?.close()
    (reader.connection, reader.counter) = (nil, nil)
    reader.watcher = nil
    reader.wayWatcher = nil
    (reader.mustReopen, reader.refused) = (false, nil)
    endTrouble()
    // A long-lived read may still need them.
    if !isObserved { commits.forgetOwnCommits() }
  }

  /// - Parameter isDue: Whether it is time to try again, even if nothing has changed.
  private func drain(isDue: Bool = false) {
    // Opening and closing the files of a store that is refused wakes everyone who watches them, this feed included.
    if !isDue, let refused = reader.refused, let path, refused == StoreFiles(at: path) { return }
    do {
      try followReplacement()
      guard let connection = reader.connection else { return }
      // Loaded before the snapshot is taken: the last commit in it is at least as new.
      let count = reader.counter?.value
      let commits = try newCommits(connection)
      for (index, var commit) in commits.enumerated() {
        let number = commit.number
        // The store was replaced, or rolled back to an earlier state, which no listener knows.
        if number < reader.lastNumber {
          reader.generation += 1
          for id in reader.listeners.keys { reader.listeners[id]?.start = -1 }
        }
        reader.lastNumber = number
        commit.generation = reader.generation
        commit.delivery = Commit.Delivery(
          storeGeneration: reader.storeGeneration, count: index == commits.count - 1 ? count : nil)
        for listener in reader.listeners.values where number > listener.start { listener.handler(commit) }
      }
      // After the handlers, which wait for nothing else.
      try expiries.look(connection)
      endTrouble()
    } catch {
      // The next commit tries again, or the next attempt; nothing is skipped.
      retryLater(isDue: isDue)
      if let error = CofferError.translated(error) as? CofferError { reportTrouble(error, isDue: isDue) }
    }
  }

  /// Continues in the store that replaced the one being read, in which everything may be new, or with a connection that is
  /// not to an outdated image.
  private func followReplacement() throws {
    var replaced: Store?
    if !reader.mustReopen {
      guard let connection = reader.connection else { return }
      // The connection is kept, as the file may be put back.
      if let loss = connection.store?.lossOfName, case .notFound = loss { throw loss }
      replaced = connection.isReplaced(isCertain: true) ? connection.store : nil
      guard replaced != nil || connection.isOfOldImage else { return }
      // Before the new one is opened, which may have an index of the same name.
      (reader.connection, reader.counter) = (nil, nil)
      reader.mustReopen = true
      // Greater than any commit's number, so that the next drain detects the replacement.
      if replaced != nil { reader.lastNumber = .max }
      try? connection.close()
    }
    // Before the attempt: what changes during it is a reason for another one.
    reader.refused = path.map(StoreFiles.init)
    // If that has failed before, it is followed by what opens it.
    if let replaced { try follow(replaced) }
    _ = try open()
    (reader.mustReopen, reader.refused) = (false, nil)
    try watch()
    sayPolling()
  }

  private func newCommits(_ connection: SQLiteConnection) throws -> [Commit] {
    try connection.beginRead()
    defer { try? connection.rollback() }
    if reader.counter == nil { reader.counter = connection.commitCounter }
    if let new = try commits.commits(after: reader.lastNumber, connection) { return new }
    let last = try ChangeLog(connection: connection).lastPosition()
    if last.number < reader.lastNumber { commits.forgetEverything() }
    return [.unknown(through: last)]
  }
}

// MARK: - Trouble

extension CommitFeed {
  private static let shortestPause = 1.0
  private static let longestPause = 30.0

  /// Tries again after a while: a key may be there again, a lock free, or the store accepted, without a commit that says so.
  private func retryLater(isDue: Bool) {
    reader.pause = isDue ? min(2 * reader.pause, Self.longestPause) : Self.shortestPause
    reader.retry?.cancel()
    let retry = DispatchWorkItem { [weak self] in self?.drain(isDue: true) }
    reader.retry = retry
    queue.asyncAfter(deadline: .now() + reader.pause, execute: retry)
  }

  private func reportTrouble(_ error: CofferError, isDue: Bool) {
    guard error != reader.trouble else { return }
    switch error {
    case .busy: return
    // By a restore at this moment, which the next attempt follows.
    case .storeReplaced where !reader.mustReopen && !isDue: return
    default: break
    }
    reader.trouble = error
    for listener in reader.listeners.values { listener.onTrouble?(error) }
    if reader.listeners.values.contains(where: { $0.onTrouble == nil }) { report(error) }
  }

  private func endTrouble() {
    reader.retry?.cancel()
    reader.retry = nil
    guard reader.trouble != nil else { return }
    reader.trouble = nil
    for listener in reader.listeners.values { listener.onTrouble?(nil) }
  }
}

/// Keeps a commit handler registered, until it is released or cancelled.
public final class CommitRegistration: Sendable {
  private let feed: CommitFeed
  private let id: UInt64

  init(
    _ feed: CommitFeed, _ handler: @escaping CommitFeed.Handler, onTrouble: CommitFeed.TroubleHandler? = nil,
    onClose: @escaping @Sendable () -> Void
  ) throws {
    self.feed = feed
    id = try CofferError.translating { try feed.listen(handler, onTrouble: onTrouble, onClose: onClose) }
  }

  /// Ends the registration.
  ///
  /// A running call of the handler continues.
  public func cancel() {
    feed.stopListening(id)
  }

  deinit {
    cancel()
  }
}
