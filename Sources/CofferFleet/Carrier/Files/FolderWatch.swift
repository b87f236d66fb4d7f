/// The stream of a folder's changes: each call checks until there is one.
actor FolderWatch {
  private let carrier: FileCarrier
  private let revision: CarrierRevision
  /// Nil before the first check, and after the end.
  private var snapshot: FolderSnapshot?
  private var isBegun = false
  private var isInterrupted = false
  private var nextListing = ContinuousClock.now
  /// The stamp of an old commit that a copy still has.
  private var staleCommit: FileStamp?

  init(carrier: FileCarrier, revision: CarrierRevision) { (self.carrier, self.revision) = (carrier, revision) }

  /// The next event; nil at the end.
  func next() async throws -> CarrierEvent? {
    while true {
      do {
        guard try await begin() else { return .readAll }
        if snapshot == nil { return nil }
        let event = try await look()
        isInterrupted = false
        if let event { return event }
      } catch is CancellationError {
        return nil
      } catch CarrierError.unreachable {
        // A mount may come back, and a copy in progress may complete.
        if !isInterrupted {
          isInterrupted = true
          return .interrupted
        }
      }
      guard (try? await Task.sleep(for: carrier.pollInterval)) != nil else { return nil }
    }
  }

  /// - Returns: Whether the folder is unchanged since the revision; otherwise the stream ends.
  private func begin() async throws -> Bool {
    guard !isBegun else { return true }
    snapshot = carrier.snapshot(at: revision)
    if snapshot == nil {
      let (now, seen) = try await carrier.readSnapshot { _ in }
      if now == revision { snapshot = seen }
    }
    isBegun = true
    return snapshot != nil
  }

  private func look() async throws -> CarrierEvent? {
    guard let before = snapshot else { return nil }
    let start = ContinuousClock.now
    let isListing = start >= nextListing
    let (folder, stale) = (carrier.folder, staleCommit)
    let isSuspect = try await carrier.onQueue { try before.isSuspect(folder, staleCommit: stale) }
    guard isSuspect || isListing else { return nil }
    let lock = try await carrier.lockForReading()
    defer { withExtendedLifetime(lock) {} }
    let (after, changes, lookedAt) = try await carrier.onQueue {
      var (after, changes) = (before, [CarrierChange]())
      let present = try folder.shards()
      for shard in isListing ? after.shards(and: present) : after.suspects(among: present, of: folder) {
        changes += try after.update(shard, of: folder).changes
      }
      return (after, changes, FileStamp(of: folder.pendingPath))
    }
    (snapshot, staleCommit) = (after, lookedAt)
    // This takes at most a thousandth of the time.
    if isListing { nextListing = .now + max(.seconds(30), start.duration(to: .now) * 1000) }
    guard !changes.isEmpty else { return nil }
    carrier.keep(after)
    return .changed(changes, after.revision)
  }
}
