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
  /// How many of the pulled changes this host had made itself, although its store did not have them any more.
  ///
  /// The store was put back to an earlier state, lost its last commits to a power failure, or is in use on two hosts.
  public internal(set) var recoveredCount = 0
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
  func reporting(_ body: () async throws -> SyncReport) async throws -> SyncReport {
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
  ///
  /// - Parameters:
  ///   - pushesFirst: Whether the carrier is taken to be where this host is: what was set here then travels a request sooner.
  ///   - comparesAll: Whether all records are read, also where the head is the one that was seen.
  func exchange(
    pushesFirst: Bool = false, comparesAll: Bool = false, _ report: inout SyncReport
  ) async throws {
    for attempt in 0..<Self.attemptCount {
      do {
        if !pushesFirst || attempt > 0 { try await pull(comparesAll: comparesAll && attempt == 0, report: &report) }
        guard membership.me.role.mayWrite else { return try noteInStep() }
        if try await push(&report) { return try noteInStep() }
      } catch is Overtaken {
        try reload()
      }
    }
    throw FleetError.busy
  }

  /// How often it is noted that the store was in step, where nothing else has to be.
  private static let noteInterval: Int64 = 3_600_000

  /// Notes now and then that the store is in step: what a fleet has forgotten is told by that from what the carrier has lost.
  private func noteInStep() throws {
    let now = try connection.readFleets { $0.time }
    guard now - membership.stored.synced > Self.noteInterval else { return }
    try connection.writeFleets { transaction in
      try checkIsPresent(transaction)
      membership.setSynced(now)
      try membership.save(transaction)
    }
  }

  /// Takes over what another program has left in the store.
  private func reload() throws {
    guard let stored = try connection.readFleets({ try $0.fleets().first { $0.id == membership.stored.id } }) else {
      throw FleetError.notJoined
    }
    membership = try Membership(stored)
  }
}
