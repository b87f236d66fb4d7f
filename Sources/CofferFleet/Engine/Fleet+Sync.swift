import Coffer
import CofferCrypto

/// The result of a sync.
public struct SyncReport: Sendable, Hashable {
  /// The number of settings changed here by others.
  public internal(set) var pulledCount = 0
  /// The number of settings pushed to the carrier.
  public internal(set) var pushedCount = 0
  /// The number of conflicts resolved and listed.
  public internal(set) var conflictCount = 0
  /// The number of pulled changes that this host had made itself, but that were missing from its store.
  ///
  /// The store was put back to an earlier state, lost its last commits in a power failure, or is in use on two hosts, see
  /// ``FleetStatus/twin``.
  public internal(set) var recoveredCount = 0
  /// The settings that cannot be shared and why, and members with wrong clocks, as sentences.
  public var problems: [String] { unsharedSettings + clockProblems }

  var unsharedSettings: [String] = []
  var clockProblems: [String] = []
}

extension Fleet {
  /// Pulls the changes of others, and pushes local ones.
  ///
  /// - Returns: The result.
  /// - Throws: ``FleetError``, ``CarrierError``, `CofferError`, `CancellationError`. Completed steps stay; nothing is
  ///   lost or partially visible.
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

  /// Only pulls the changes of others.
  func takeAll() async throws {
    _ = try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await pull(report: &report)
        return report
      }
    }
  }

  /// Continues with the carrier's state, although this host has seen a later one, and pushes what the carrier has lost.
  ///
  /// Call it if ``sync()`` reports a rollback of the carrier that is intended, because a backup was restored. Every host
  /// that saw a later state reports that, and pushes what it knows once it accepts the rollback. A reader cannot push: it
  /// keeps what it has until someone sets it again.
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

  /// Runs `body`, and reports how it ended.
  func reporting(_ body: () async throws -> SyncReport) async throws -> SyncReport {
    do {
      let report = try await body()
      problems = report.problems
      set(try standing())
      return report
    } catch let error as CarrierError {
      switch error {
      case .unreachable: set(.offline("\(error)"))
      case .full: set(.full("\(error)"))
      default: set(.stopped("\(error)"))
      }
      throw error
    } catch CofferError.diskFull(let path) {
      set(.full("\(CofferError.diskFull(path: path))"))
      throw CofferError.diskFull(path: path)
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      let isRemoved = if case FleetError.removed = error { true } else { false }
      set(.stopped("\(error)"), isLast: isRemoved)
      throw error
    }
  }

  /// How many times others may be faster before this gives up.
  static let attemptCount = 40

  /// Waits after others were faster: at random, and longer each time, so that writers that came at once come one after another.
  static func pause(after attempt: Int) async throws {
    try await Task.sleep(for: .milliseconds(Int.random(in: 0..<(1 << min(attempt, 8)))))
  }

  /// Pulls and pushes until both sides are equal.
  ///
  /// - Parameters:
  ///   - pushesFirst: Whether to assume that the carrier has nothing new: local changes then arrive a request sooner.
  ///   - comparesAll: Whether to read all records even if the head is the one last seen.
  func exchange(
    pushesFirst: Bool = false, comparesAll: Bool = false, _ report: inout SyncReport
  ) async throws {
    for attempt in 0..<Self.attemptCount {
      do {
        let resumes = try isResuming()
        if resumes || !pushesFirst || attempt > 0 {
          try await pull(comparesAll: resumes || comparesAll && attempt == 0, report: &report)
        }
        // An admin may have just allowed it.
        if try !resumes && isResuming() { try await pull(comparesAll: true, report: &report) }
        guard membership.mayWrite else { return try noteInStep() }
        if try await push(&report), try await giveSignOfLife() {
          try await admit()
          return try noteInStep()
        }
        try await Self.pause(after: attempt)
      } catch is Overtaken {
        try reload()
      }
    }
    throw FleetError.busy
  }

  /// Whether collections of which commits were passed over can be taken now.
  func isResuming() throws -> Bool {
    try connection.readFleets { try !Readiness($0, membership).resumable.isEmpty }
  }

  /// How often to record that the store is in sync, if there is nothing else to record.
  private static let noteInterval: Int64 = 3_600_000

  /// Records from time to time that the store is in sync, which its status says.
  private func noteInStep() throws {
    let now = try connection.readFleets { $0.time }
    guard now - membership.stored.synced > Self.noteInterval else { return }
    try connection.writeFleets { transaction in
      try checkIsPresent(transaction)
      membership.setSynced(now)
      try membership.save(transaction)
    }
  }

  /// Adopts what another program has changed in the store.
  private func reload() throws {
    guard let stored = try connection.readFleets({ try $0.fleets().first { $0.id == membership.stored.id } }) else {
      throw FleetError.notJoined
    }
    membership = try Membership(stored)
  }
}
