import Coffer

// What was pulled may say that names are those of one setting, which this host or others have set independently until now.

extension Merge {
  /// An item that is one of several names of a setting.
  private struct Named {
    let place: SettingPlace
    let version: CommitNumber
    let modified: Int64
    let record: StoredRecord?

    /// Whether the fleet has this value.
    var isShared: Bool { record.map { !$0.isRemoved && ($0.lostVersion ?? $0.version) == version } ?? false }
    var clock: HybridClock { record?.hybridClock ?? HybridClock(milliseconds: 0) }
    var author: MemberID { MemberID(bytes: record?.author ?? []) }
  }

  /// Lets the other names of renamed settings follow what was merged.
  ///
  /// A value that was set here and is replaced by that of another name is a conflict, as if it had that name.
  mutating func letNamesFollow() throws {
    let transaction = transaction
    var losing: [(item: Named, winner: String)] = []
    try transaction.letNamesFollow(of: fleet, hasDeclarations: !declaringApplications.isEmpty) { places, isConverted in
      let items = try places.compactMap(named)
      let counting = try name(that: items, isConverted)
      guard let counting, counting.isShared else { return counting?.place }
      losing += items.filter { !$0.isShared }.map { ($0, name(counting.author)) }
      return counting.place
    }
    for (item, winner) in losing {
      let (key, collection) = (item.place.key.string, item.place.collection.string)
      guard try transaction.state(of: key, in: collection)?.version != item.version else { continue }
      try addConflict(key, collection, item.version, winner: winner, loser: me.name)
    }
  }

  private func named(_ place: SettingPlace) throws -> Named? {
    let (key, collection) = (place.key.string, place.collection.string)
    guard let item = try transaction.state(of: key, in: collection) else { return nil }
    return Named(
      place: place, version: item.version, modified: item.modified,
      record: try transaction.record(key, in: collection, of: fleet))
  }

  /// The name that counts: one rule on all hosts, so that they agree without asking each other.
  ///
  /// - What was changed here and had been shared is a change of the setting that is still to be pushed.
  /// - What only this host has ever had is compared with the fleet's value like a value of the same name: one that joins loses.
  /// - Of several that the fleet has, the one that was set last counts.
  ///
  /// - Returns: Nil if all are in step, as far as this host can know.
  private func name(that items: [Named], _ isConverted: Bool) throws -> Named? {
    func latest(_ items: [Named]) -> Named? { items.max { $0.modified < $1.modified } }
    let own = items.filter { !$0.isShared }
    let shared = items.filter(\.isShared).max { ($0.clock, $0.author) < ($1.clock, $1.author) }
    guard let shared else { return latest(own) }
    // Their forms differ, and only a program knows whether they mean the same.
    if own.isEmpty, isConverted { return nil }
    if let changed = latest(own.filter { $0.record != nil }) { return changed }
    guard let new = latest(own), isKept(new, over: shared) else { return shared }
    return new
  }

  private func isKept(_ own: Named, over shared: Named) -> Bool {
    guard !isJoining(own.place.collection.string) else { return false }
    switch rule(own.place.collection.string) {
    case .theirsWins: return false
    case .oursWins: return true
    case .laterWins:
      if shared.clock.isAhead(of: now) { return true }
      let clock = HybridClock.next(at: own.modified, after: nil, now: now)
      return (shared.clock, shared.author) < (clock, me.id)
    }
  }
}
