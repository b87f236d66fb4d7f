import Coffer

/// A head is a sign of life: a carrier that withholds later commits shows an old one.
extension Fleet {
  /// Sets how old the last commit may be before hosts are ``FleetCondition/stale(since:)``.
  ///
  /// Hosts that write commit at least four times in it, and have to run, or to sync, so often.
  ///
  /// - Parameter age: In whole seconds; nil for any age.
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin; what ``sync()`` throws.
  public func setGreatestAge(_ age: Duration?) async throws {
    try await change { members, _ in
      members.greatestAge = Members.greatestAge(age)
      return false
    }
  }

  /// How old the last commit may be for this store to be in step, in milliseconds; nil for any age.
  var greatestAge: Int64? {
    let seconds = membership.members.greatestAge
    return seconds == 0 ? nil : Int64(seconds) * 1000
  }

  /// Whether the last commit is older than this, or from a clock so far ahead that its time says nothing.
  private func isOlder(than age: Int64, _ head: Head, at now: Int64) -> Bool {
    // The time is what its author says, any number.
    head.time < now - age || head.time > now + HybridClock.toleratedLead
  }

  /// In step, unless the last commit is too old, or a collection waits.
  func standing() throws -> FleetCondition {
    if let stale = try staleness() { return stale }
    // Without a vault, and if no collection is sealed in the fleet, nothing can wait.
    let mayWait = database.vault.wasFound || membership.members.shared.contains(where: \.isSealed)
    guard mayWait || condition == .waiting else { return .inStep }
    return try connection.readFleets { transaction in
      let readiness = try Readiness(transaction, membership)
      let waits = try readiness.waits(transaction, membership).contains { $0.reason != .consent }
      return waits || !readiness.resumable.isEmpty ? .waiting : .inStep
    }
  }

  /// Nil if the last commit is not too old.
  func staleness() throws -> FleetCondition? {
    guard let greatestAge, let head = membership.head,
      isOlder(than: greatestAge, head, at: try connection.readFleets({ $0.time }))
    else { return nil }
    return .stale(since: Self.date(head.time))
  }

  /// Commits a head with the same records once the last one has a quarter of the greatest age.
  ///
  /// - Returns: False if another member has committed meanwhile.
  func giveSignOfLife() async throws -> Bool {
    guard let greatestAge, let head = membership.head,
      isOlder(than: greatestAge / 4, head, at: try connection.readFleets({ $0.time }))
    else { return true }
    return try await commit([])
  }

  /// Syncs as often as signs of life are due, for as long as this is not cancelled.
  func signNowAndThen(_ pause: (Duration) -> Duration) async throws {
    while true {
      let age = greatestAge
      try await Task.sleep(for: pause(age.map { .milliseconds($0 / 4) } ?? .seconds(3600)))
      guard age != nil else { continue }
      do { try await sync() } catch {
        guard Self.mayPass(error) else { throw error }
      }
    }
  }
}
