import Coffer
import CofferCrypto

/// What a sync did.
public struct SyncReport: Sendable, Hashable {
  /// How many settings were changed here by what others did.
  public internal(set) var pulledCount = 0
  /// How many settings went to the carrier.
  public internal(set) var pushedCount = 0
  /// How many conflicts were settled, and wait for somebody to look.
  public internal(set) var conflictCount = 0
  /// What does not travel and why, in sentences.
  public internal(set) var problems: [String] = []
}

extension Fleet {
  /// Takes what others have set, and pushes what was set here.
  ///
  /// - Returns: What it did.
  /// - Throws: ``FleetError``, ``CarrierError``, `CofferError`, `CancellationError`. What was done until then is done; nothing is
  ///   lost or half seen.
  @discardableResult
  public func sync() async throws -> SyncReport {
    try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await exchange(&report)
        return report
      }
    }
  }

  /// Takes what others have set, and no more.
  func takeAll() async throws {
    _ = try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await pull(report: &report)
        return report
      }
    }
  }

  /// Goes on from what the carrier has, although that is less than this host has seen, and pushes what the carrier has lost.
  ///
  /// Call it when ``sync()`` says that the carrier went back, and that is meant: a backup of it was restored. Every host that saw
  /// more than the carrier has says so, and pushes what it knows when it accepts that. A reader can push nothing: it keeps what
  /// it has until somebody sets it anew.
  ///
  /// - Throws: ``FleetError``, ``CarrierError``, `CofferError`.
  @discardableResult
  public func acceptRollback() async throws -> SyncReport {
    try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await pull(isRollbackAccepted: true, report: &report)
        try await exchange(&report)
        return report
      }
    }
  }

  /// Runs `body`, and says how it ended.
  private func reporting(_ body: () async throws -> SyncReport) async throws -> SyncReport {
    do {
      let report = try await body()
      problems = report.problems
      set(.inStep)
      return report
    } catch let error as CarrierError {
      if case .unreachable = error { set(.offline("\(error)")) } else { set(.stopped("\(error)")) }
      throw error
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      set(.stopped("\(error)"))
      throw error
    }
  }

  /// How often others may be faster before this gives up.
  private static let attemptCount = 20

  /// Pulls and pushes until both sides have the same.
  private func exchange(_ report: inout SyncReport) async throws {
    for _ in 0..<Self.attemptCount {
      do {
        try await pull(report: &report)
        guard membership.me.role.mayWrite else { return }
        if try await push(&report) { return }
      } catch is Overtaken {
        try reload()
      }
    }
    throw FleetError.busy
  }

  /// Takes over what another program has left in the store.
  private func reload() throws {
    guard let stored = try connection.readFleets({ try $0.fleets().first { $0.id == membership.stored.id } }) else {
      throw FleetError.notJoined
    }
    membership = try Membership(stored)
  }

  // MARK: Staying

  /// Stays, and keeps the store in step: what others set is here, and what is set here is there, at once; until the task is
  /// cancelled.
  ///
  /// While the carrier cannot be reached, or something is wrong with it, the store serves what it has, ``states()`` says so, and
  /// this goes on trying.
  ///
  /// ```swift
  /// let task = Task { try await fleet.run() }
  /// ```
  ///
  /// - Throws: `CancellationError`; `CofferError` where the store itself fails; ``FleetError/removed`` and `.notJoined`.
  public func run() async throws {
    let commits = try database.commits()
    let (wakes, wake) = AsyncStream.makeStream(of: Wake.self)
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      let shared = Set(membership.members.collections.map(ByteString.init))
      group.addTask {
        for await commit in commits where commit.concerns(shared) { wake.yield(.local) }
      }
      group.addTask { try await self.watch(wake) }
      group.addTask { try await self.work(wakes) }
      // None ends without an error, or being cancelled.
      try await group.next()
    }
    try Task.checkCancellation()
  }

  /// Why to look.
  enum Wake: Sendable {
    case local
    case carrier(CarrierEvent)
    /// A stream of changes begins, or ended.
    case look
  }

  /// How long to wait after a failure, at most.
  private static let longestPause = Duration.seconds(60)
  /// How long a quiet fleet goes without a look.
  private static let interval = Duration.seconds(3600)

  /// Hears of the carrier's changes.
  private func watch(_ wake: AsyncStream<Wake>.Continuation) async throws {
    var pause = Duration.seconds(1)
    while true {
      wake.yield(.look)
      if let revision = membership.stored.revision {
        do {
          for try await event in carrier.changes(after: CarrierRevision(text: revision)) {
            pause = .seconds(1)
            wake.yield(.carrier(event))
          }
        } catch is CancellationError {
          throw CancellationError()
        } catch {}
      }
      try await Task.sleep(for: pause)
      pause = min(pause * 2, Self.longestPause)
    }
  }

  private func work(_ wakes: AsyncStream<Wake>) async throws {
    var changes = CarrierChanges()
    for await wake in wakes {
      try Task.checkCancellation()
      do {
        switch wake {
        case .look, .local: try await sync()
        case .carrier(let event):
          guard changes.add(event) else {
            changes.removeAll()
            continue
          }
          guard let view = changes.view else { continue }
          changes.removeAll()
          try await follow(view)
        }
      } catch let error as FleetError {
        switch error {
        case .removed, .notJoined: throw error
        default: break
        }
      } catch is CarrierError {
      } catch let error as CofferError where !error.mayPass {
        throw error
      } catch is CofferError {}
    }
    try Task.checkCancellation()
  }

  /// Takes a state that the carrier's stream of changes has brought.
  private func follow(_ view: CarrierView) async throws {
    // What this host commits itself comes back to it.
    guard view.head != membership.stored.head else { return membership.setRevision(view.revision.text) }
    do {
      _ = try await turns.take {
        try await reporting {
          var report = SyncReport()
          try await take(view, report: &report)
          report.problems = problems
          return report
        }
      }
    } catch {
      // An earlier one of its own commits comes back, too; or it missed something.
      try await sync()
    }
  }
}

extension Commit {
  fileprivate func concerns(_ collections: Set<ByteString>) -> Bool {
    didClearAllCollections || changedCollections.contains { collections.contains(ByteString($0)) }
  }
}

extension CofferError {
  /// Whether trying again may help.
  fileprivate var mayPass: Bool {
    switch self {
    case .busy, .diskFull, .inputOutput, .locked: true
    default: false
    }
  }
}
