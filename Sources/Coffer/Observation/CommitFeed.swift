import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// Tells of commits in their order, whoever made them: what the change log says, and for our own commits what it cannot
/// say.
///
/// While nobody listens it costs a writer one load. With the first listener it opens a connection of its own, and is
/// woken by our own commits and, through a `FileWatcher`, by those of others.
final class CommitFeed: Sendable {
  typealias Handler = @Sendable (CommitNotification) -> Void
  /// Makes a connection to read the change log with.
  typealias Connect = @Sendable () throws -> SQLiteConnection

  /// A commit of this database, as it is known before the change log has it.
  struct OwnCommit: Sendable {
    let connection: Connection.ID?
    let changes: ChangeSet
    let names: [Int64: String]
    let customObject: (any Sendable)?
  }

  private struct Listener {
    /// What it may know already.
    var start: Int64
    let handler: Handler
    let onClose: @Sendable () -> Void
  }

  private let path: String?
  private let writer: Int64
  private let connect: Connect
  private let queue = DispatchQueue(label: "coffer.commits")
  private let listenerCount = Atomic<Int>(0)
  private let isDrainQueued = Atomic<Bool>(false)
  private let ownCommits = Lock(OwnCommits())

  /// A structure, as a lock that held the dictionary itself would have the runtime look for its type when it goes away:
  /// a look through all conformances there are.
  private struct OwnCommits {
    var bySequence: [Int64: OwnCommit] = [:]
  }
  private let reader = Reader()

  /// Unchecked: only `queue` touches it.
  private final class Reader: @unchecked Sendable {
    var connection: SQLiteConnection?
    var watcher: FileWatcher?
    var lastSequence: Int64 = 0
    var names: [Int64: String] = [:]
    var listeners: [UInt64: Listener] = [:]
    var lastListener: UInt64 = 0
  }

  /// - Parameter path: The store file, which tells of the commits of others; nil for a store in memory.
  init(path: String?, writer: Int64, connect: @escaping Connect) {
    self.path = path
    self.writer = writer
    self.connect = connect
  }

  private static let queueKey = DispatchSpecificKey<ObjectIdentifier>()

  /// Runs `body` on the queue; handlers are there already.
  private func onQueue<Result>(_ body: () throws -> Result) rethrows -> Result {
    if DispatchQueue.getSpecific(key: Self.queueKey) == ObjectIdentifier(self) { return try body() }
    return try queue.sync(execute: body)
  }

  // MARK: For the writer

  /// Whether a writer has to say more than the change log holds.
  var isObserved: Bool { listenerCount.load(ordering: .acquiring) > 0 }

  /// Called with the write lock held, before the commit, so that nobody reads the commit's row without it.
  func willCommit(_ sequence: Int64, _ commit: OwnCommit) {
    ownCommits.withLock { commits in
      commits.bySequence[sequence] = commit
      guard commits.bySequence.count > 2 * Self.keptCount else { return }
      commits.bySequence = commits.bySequence.filter { $0.key > sequence - Self.keptCount }
    }
  }

  /// How many own commits are kept for those who have not asked for them yet.
  private static let keptCount: Int64 = 1024

  func didNotCommit(_ sequence: Int64) {
    ownCommits.withLock { _ = $0.bySequence.removeValue(forKey: sequence) }
  }

  /// Called after a commit became visible.
  func didCommit() {
    guard isObserved else { return }
    wake()
  }

  private func wake() {
    guard !isDrainQueued.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.async {
      self.isDrainQueued.store(false, ordering: .releasing)
      self.drain()
    }
  }

  // MARK: For listeners

  /// Hands `handler` every commit that becomes visible after this call, in order, on the feed's queue.
  func listen(_ handler: @escaping Handler, onClose: @escaping @Sendable () -> Void) throws -> UInt64 {
    // Before the start is read: every later commit of ours then comes with what the log cannot say.
    listenerCount.add(1, ordering: .acquiringAndReleasing)
    do {
      return try onQueue {
        if reader.connection == nil { try start() }
        drain()
        reader.lastListener += 1
        reader.listeners[reader.lastListener] = Listener(
          start: reader.lastSequence, handler: handler, onClose: onClose)
        return reader.lastListener
      }
    } catch {
      listenerCount.subtract(1, ordering: .acquiringAndReleasing)
      throw error
    }
  }

  func stopListening(_ id: UInt64) {
    queue.async {
      guard self.reader.listeners.removeValue(forKey: id) != nil else { return }
      self.listenerCount.subtract(1, ordering: .acquiringAndReleasing)
      if self.reader.listeners.isEmpty { self.stop() }
    }
  }

  /// Keeps what our commits say beside the log, for a long-lived read of this database.
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
    // Not before: a queue with a value of its own starts a thread when it goes away.
    queue.setSpecific(key: Self.queueKey, value: ObjectIdentifier(self))
    // First the watcher, so that nothing slips in between.
    if let path { reader.watcher = try FileWatcher(path: path, queue: queue) { [weak self] in self?.wake() } }
    let connection = try connect()
    reader.connection = connection
    reader.lastSequence = try ChangeLog(connection: connection).lastSequence()
    try loadNames(connection)
  }

  private func stop() {
    try? reader.connection?.close()
    reader.connection = nil
    reader.watcher = nil
    reader.names = [:]
    // A long-lived read may still ask for them.
    if !isObserved { ownCommits.withLock { $0 = OwnCommits() } }
  }

  private func drain() {
    guard let connection = reader.connection else { return }
    do {
      for notification in try notifications(connection) {
        let sequence = Int64(notification.snapshot)
        // The store was put back to an earlier state, which nobody knows yet.
        if sequence < reader.lastSequence { for id in reader.listeners.keys { reader.listeners[id]?.start = -1 } }
        reader.lastSequence = sequence
        for listener in reader.listeners.values where notification.snapshot > listener.start {
          listener.handler(notification)
        }
      }
    } catch {
      // The next commit tries again; nothing is skipped.
    }
  }

  private func notifications(_ connection: SQLiteConnection) throws -> [CommitNotification] {
    try connection.beginRead()
    defer { try? connection.rollback() }
    let log = ChangeLog(connection: connection)
    guard let rows = try log.rows(after: reader.lastSequence) else {
      return [.unknown(through: try log.lastSequence())]
    }
    if rows.contains(where: { row in row.changes.collections.keys.contains { reader.names[$0] == nil } }) {
      try loadNames(connection)
    }
    return rows.map { notification(of: $0, names: reader.names) }
  }

  private func loadNames(_ connection: SQLiteConnection) throws {
    reader.names.merge(try Self.names(connection)) { $1 }
  }

  static func names(_ connection: SQLiteConnection) throws -> [Int64: String] {
    var names: [Int64: String] = [:]
    try connection.statement("SELECT id, name FROM collections").query { names[$0.integer(0)] = $0.text(1) }
    return names
  }

  /// A commit of the change log, with what is known of it here.
  ///
  /// - Parameter isUnnamedRemovalOfAll: Whether a removed collection without a name may be any; else nobody can have seen it.
  func notification(
    of row: ChangeLog.Row, names: [Int64: String], isUnnamedRemovalOfAll: Bool = false
  ) -> CommitNotification {
    let isOwn = row.writer == writer
    let own = isOwn ? ownCommits.withLock { $0.bySequence[row.sequence] } : nil
    let changes = own?.changes ?? row.changes
    var mayClearAny = false
    var collections: [ByteString: ChangeSet.CollectionChange] = [:]
    // A collection that was removed and made again has two ids, the later one higher.
    for (id, change) in changes.collections.sorted(by: { $0.key < $1.key }) where !change.isEmpty {
      // Without a name: made and removed again before anyone could see it.
      guard let name = (own?.names[id] ?? names[id]).map(ByteString.init) else {
        mayClearAny = mayClearAny || isUnnamedRemovalOfAll && change.isCleared
        continue
      }
      collections[name] = collections[name]?.followed(by: change) ?? change
    }
    return CommitNotification(
      snapshot: UInt64(row.sequence),
      origin: own?.connection.map { .connection($0) } ?? (isOwn ? .thisDatabase : .elsewhere),
      customObjects: own?.customObject.map { [$0] } ?? [],
      didClearAllCollections: changes.isAllCleared || mayClearAny, collections: collections)
  }
}

extension CommitNotification {
  /// Stands for commits that are no longer in the change log: anything may have changed.
  static func unknown(through sequence: Int64) -> CommitNotification {
    CommitNotification(
      snapshot: UInt64(sequence), origin: .several, customObjects: [], didClearAllCollections: true, collections: [:])
  }
}
