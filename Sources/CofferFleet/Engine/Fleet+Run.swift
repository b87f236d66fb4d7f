import Coffer

extension Fleet {
  /// Keeps the store in sync: exchanges changes in both directions immediately, until the task is
  /// cancelled.
  ///
  /// The store announces local changes, by any program, and the carrier streams
  /// its own; nothing is polled. While the carrier cannot be reached, or has a problem, the store serves what it has,
  /// ``states()`` reports that, and this keeps trying.
  ///
  /// ```swift
  /// let task = Task { try await fleet.run() }
  /// ```
  ///
  /// - Throws: `CancellationError`; `CofferError` if the store itself fails; ``FleetError/removed`` and `.notJoined`.
  public func run() async throws {
    let (commits, vaultEvents) = (try database.commits(), database.vault.events)
    let (wakes, wake) = AsyncStream.makeStream(of: Wake.self)
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        for await commit in commits {
          if await self.shares(commit) { wake.yield(.local) }
        }
      }
      group.addTask {
        // What is sealed and waits can be exchanged now.
        for await event in vaultEvents where event != .locked { wake.yield(.local) }
      }
      group.addTask { try await self.watch(wake) }
      group.addTask { try await self.work(wakes, wake) }
      group.addTask { try await self.compareNowAndThen() }
      group.addTask { try await self.signNowAndThen(Self.about) }
      // Each ends with an error only, or when cancelled.
      try await group.next()
    }
    try Task.checkCancellation()
  }

  /// The reason for the next sync.
  private enum Wake: Sendable {
    /// A local change.
    case local
    /// The carrier's stream of changes has begun.
    case stream
    case carrier(CarrierEvent)
    /// The time of a retry has come.
    case retry
  }

  private static let firstPause = Duration.seconds(1)
  /// The longest wait after a failure.
  private static let longestPause = Duration.seconds(10)
  /// The time between full comparisons, which find what a stream of changes does not show: records removed while the head stayed.
  private static let comparisonInterval = Duration.seconds(86_400)

  /// About this duration, at random, so that not all hosts come at once.
  private static func about(_ time: Duration) -> Duration { time * Double.random(in: 0.5...1) }

  private func shares(_ commit: Commit) -> Bool {
    commit.scope == .everything || commit.actions.contains(where: \.isDeclaration)
      || commit.changedCollections.contains { membership.members.shares($0) }
  }

  // MARK: Listening

  /// Receives the carrier's changes.
  private func watch(_ wake: AsyncStream<Wake>.Continuation) async throws {
    var pause = Self.firstPause
    // Without a revision there is nothing to continue from.
    var missesChanges = membership.stored.revision == nil
    while true {
      do {
        if missesChanges { try await compare() }
        missesChanges = false
        wake.yield(.stream)
        for try await event in carrier.changes(after: CarrierRevision(text: membership.stored.revision ?? "")) {
          guard event != .readAll else {
            missesChanges = true
            break
          }
          if event != .interrupted { pause = Self.firstPause }
          wake.yield(.carrier(event))
        }
      } catch {
        guard Self.mayPass(error) else { throw error }
      }
      try await Task.sleep(for: Self.about(pause))
      pause = min(pause * 2, Self.longestPause)
    }
  }

  private func compareNowAndThen() async throws {
    while true {
      try await Task.sleep(for: Self.about(Self.comparisonInterval))
      do { try await compare() } catch {
        guard Self.mayPass(error) else { throw error }
      }
    }
  }

  /// Reads everything on the carrier, and gets in sync with it.
  private func compare() async throws {
    _ = try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await exchange(comparesAll: true, &report)
        return report
      }
    }
  }

  // MARK: Working

  private func work(_ wakes: AsyncStream<Wake>, _ wake: AsyncStream<Wake>.Continuation) async throws {
    var changes = CarrierChanges()
    var pause = Self.firstPause
    var retry: Task<Void, Never>?
    defer { retry?.cancel() }
    for await next in wakes {
      try Task.checkCancellation()
      do {
        switch next {
        case .local:
          // However much is set meanwhile, the next attempt pushes all of it.
          if retry != nil { continue }
          try await push()
        case .stream:
          changes.removeAll()
          try await sync()
        case .retry:
          retry = nil
          try await sync()
        case .carrier(.interrupted):
          // Reports that the carrier is unreachable, and when it is back.
          try await sync()
        case .carrier(let event):
          // A host has joined, and waits for an admin's.
          if membership.mayManage, event.hasJoinRequest { try await sync() }
          guard changes.add(event), let view = changes.view else { continue }
          changes.removeAll()
          try await follow(view)
        }
        pause = Self.firstPause
      } catch {
        guard Self.mayPass(error) else { throw error }
        guard retry == nil else { continue }
        let time = Self.about(pause)
        retry = Task {
          guard (try? await Task.sleep(for: time)) != nil else { return }
          wake.yield(.retry)
        }
        pause = min(pause * 2, Self.longestPause)
      }
    }
    try Task.checkCancellation()
  }

  /// Whether a retry may help.
  static func mayPass(_ error: any Error) -> Bool {
    switch error {
    case FleetError.removed, FleetError.notJoined: false
    case is FleetError, is CarrierError: true
    case let error as CofferError:
      switch error {
      case .busy, .diskFull, .inputOutput, .vaultLocked: true
      default: false
      }
    default: false
    }
  }

  /// Pushes local changes, assuming that the carrier has nothing new.
  private func push() async throws {
    guard try hasLocalChanges() else { return try noteStanding() }
    _ = try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await exchange(pushesFirst: true, &report)
        return report
      }
    }
  }

  /// Applies a state that the carrier's stream of changes has delivered.
  private func follow(_ view: CarrierView) async throws {
    // The stream also delivers this host's own commits.
    guard try !isKnown(view.head) else { return membership.setRevision(view.revision.text) }
    do {
      try await turns.take {
        var report = SyncReport()
        try await take(view, report: &report)
        set(try standing())
      }
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      // The stream missed something, or another program has synced the store.
      return _ = try await sync()
    }
    // Local changes of the same settings, which must win.
    try await push()
  }

  private func isKnown(_ head: [UInt8]) throws -> Bool {
    try head == membership.stored.head || recentHeads.contains(head.digest)
  }

  /// Reports it if a collection waits since it was sealed or unsealed, or no longer.
  private func noteStanding() throws {
    guard condition == .inStep || condition == .waiting else { return }
    let standing = try standing()
    // Another reason is news, too.
    if standing != condition || standing == .waiting { set(standing) }
  }

  /// Whether there is something to push, or to take that waited for the vault.
  private func hasLocalChanges() throws -> Bool {
    guard membership.mayWrite || condition == .waiting else { return false }
    return try connection.readFleets { transaction in
      guard try transaction.fleets().contains(where: { $0.id == membership.stored.id }) else {
        throw FleetError.notJoined
      }
      let readiness = try Readiness(transaction, membership)
      if !readiness.resumable.isEmpty { return true }
      guard membership.mayWrite else { return false }
      return try !transaction.localChanges(of: membership.stored, in: readiness.given, withValues: false).isEmpty
        || !transaction.localDeclarations(
          of: membership.stored, in: readiness.given, besides: readiness.consent.agreed
        ).isEmpty
    }
  }
}

extension CarrierEvent {
  fileprivate var hasJoinRequest: Bool {
    guard case .changed(let changes, _) = self else { return false }
    return changes.contains {
      if case .put(let object) = $0 { object.name.hasPrefix(JoinRequest.prefix) } else { false }
    }
  }
}
