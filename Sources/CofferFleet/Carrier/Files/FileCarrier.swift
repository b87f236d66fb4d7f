import CofferCrypto
import Dispatch

/// A carrier in a folder: on a disk, an NFS mount, a stick, or anything that rsync, git or an S3 mount synchronizes.
///
///     let carrier = try FileCarrier(address: "file:///srv/fleets/web")
///
/// In the folder:
///
/// - `objects/3f/records_0a1b…`: an object, in a folder named by the first byte of its name's SHA-256; `_` stands for
///   `/`. The file has the SHA-256 of the object, then the object, so that an incomplete file is detected. All
///   other files are ignored.
/// - `pending`: a commit of several changes while it is being applied. One left by a killed writer is
///   completed by the next writer.
/// - `lock`: flock(2). Writers exclude each other and all readers, readers exclude writers. Over NFS this works between
///   hosts if locks go to the server: NFSv4, or NFSv3 with its lock daemon, and neither `nolock` nor `local_lock` among the
///   options of the mount. Copies that a tool such as rsync or git keeps in sync have no common lock: let one host write to
///   each copy.
/// - `temporary`: files without their final name. A writer removes leftovers.
///
/// Files have mode 0660 and folders 0770, less the umask: other users have no access, and a group shares the folder if it
/// has the set-group-ID bit and the umask is 007. The folder is created only by a commit on the condition that an object is
/// absent, which creates a fleet, so that a missing mount is noticed.
///
/// Readers check every half second whether a folder has changed, and occasionally each file, for file systems on which
/// folders have no times.
public final class FileCarrier: Carrier {
  /// The address.
  public let description: String
  /// The limits of a commit: 4,096 changes, 16 MiB, and 1 MiB per object.
  public let limits = CarrierLimits(operationCount: 4096, requestByteCount: 16 << 20, objectByteCount: 1 << 20)

  let folder: CarrierFolder
  let pollInterval: Duration
  private let queue = DispatchQueue(label: "coffer.carrier.file", attributes: .concurrent)
  /// The waiting and running commits of this carrier, in order.
  private let turns = Lock<(last: Int, queue: [Int])>((0, []))
  /// The last seen state: a stream of changes that starts there needs to read nothing.
  private let lastSnapshot = Lock<FolderSnapshot?>(nil)

  /// A carrier in the folder of an address.
  ///
  /// - Parameter address: `file://` and an absolute path, with for example `%20` for a space.
  /// - Throws: ``CarrierError/badAddress(_:reason:)``.
  public convenience init(address: String) throws(CarrierError) {
    try self.init(address: CarrierAddress(address), pollInterval: .milliseconds(500))
  }

  init(address: CarrierAddress, pollInterval: Duration) throws(CarrierError) {
    folder = try CarrierFolder(address: address)
    description = address.text
    self.pollInterval = pollInterval
  }

  // MARK: - Reading

  /// Reads all objects, folder by folder, while writers are locked out.
  public func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    let (revision, snapshot) = try await readSnapshot(body)
    keep(snapshot)
    return revision
  }

  func readSnapshot(
    _ body: ([CarrierObject]) throws -> Void
  ) async throws -> (CarrierRevision, FolderSnapshot) {
    let lock = try await lockForReading()
    defer { withExtendedLifetime(lock) {} }
    let folder = folder
    var snapshot = FolderSnapshot()
    for shard in try await onQueue({ try folder.shards() }) {
      let before = snapshot
      let (after, objects) = try await onQueue {
        var after = before
        let update = try after.update(shard, of: folder)
        if let path = update.incompletePath { throw folder.incomplete(path) }
        return (after, update.changes.compactMap(\.object))
      }
      snapshot = after
      try Task.checkCancellation()
      if !objects.isEmpty { try body(objects) }
    }
    return (snapshot.revision, snapshot)
  }

  /// Those of the named objects that exist.
  public func read(_ names: [String]) async throws -> [CarrierObject] {
    for name in names { checkName(name) }
    let lock = try await lockForReading()
    defer { withExtendedLifetime(lock) {} }
    let folder = folder
    return try await onQueue {
      try names.compactMap { name in
        try folder.object(name).map { CarrierObject(name: name, bytes: $0) }
      }
    }
  }

  // MARK: - Writing

  /// Applies all changes, or none; durable when it returns.
  public func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try check(changes, condition)
    if !changes.isEmpty, let tool = CopyingTool(of: folder.path) {
      throw CarrierError.copied(carrier: description, tool: tool.name, sign: tool.sign)
    }
    // One at a time, in order: with the lock alone, one of several can starve.
    let turn = turns.withLock { turns in
      turns.last += 1
      turns.queue.append(turns.last)
      return turns.last
    }
    defer { turns.withLock { $0.queue.removeAll { $0 == turn } } }
    while turns.withLock({ $0.queue.first != turn }) { try await Task.sleep(for: .milliseconds(5)) }
    return try await commitInTurn(changes, if: condition)
  }

  private func commitInTurn(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    let folder = folder
    if condition.bytes == nil { try await onQueue { try folder.make() } }
    let lock = try await FolderLock.take(.exclusive, of: folder)
    defer { withExtendedLifetime(lock) {} }
    try Task.checkCancellation()
    return try await onQueue {
      try folder.removeTemporaryFiles()
      try PendingCommit.complete(in: folder)
      guard try folder.object(condition.name) == condition.bytes else { return false }
      try PendingCommit(changes: changes, condition: condition).make(in: folder)
      return true
    }
  }

  // MARK: - Changes

  /// The changes since a revision; changes within half a second are one event.
  ///
  /// After the last revision that this instance returned, nothing is read twice. After another one everything is read once,
  /// and the stream begins with ``CarrierEvent/readAll`` if anything has changed since.
  public func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    let watch = FolderWatch(carrier: self, revision: revision)
    return AsyncThrowingStream { try await watch.next() }
  }

  func snapshot(at revision: CarrierRevision) -> FolderSnapshot? {
    lastSnapshot.withLock { $0?.revision == revision ? $0 : nil }
  }

  func keep(_ snapshot: FolderSnapshot) { lastSnapshot.withLock { $0 = snapshot } }

  // MARK: - Locks and queues

  /// The lock of readers, under which no commit is partly applied; nil if there is no lock file, as in a copy.
  func lockForReading() async throws -> FolderLock? {
    let folder = folder
    while true {
      let lock = try await FolderLock.take(.shared, of: folder)
      guard try await onQueue({ try PendingCommit.isLeft(in: folder) }) else { return lock }
      lock?.release()
      try await completePendingCommit()
    }
  }

  private func completePendingCommit() async throws {
    let folder = folder
    do {
      let lock = try await FolderLock.take(.exclusive, of: folder)
      try await onQueue { try PendingCommit.complete(in: folder) }
      withExtendedLifetime(lock) {}
    } catch CarrierError.refused {
      throw folder.unreachable(
        "a commit is unfinished, and this host may not write here; another host must complete it")
    }
  }

  /// Runs blocking work outside of the tasks' threads.
  func onQueue<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
