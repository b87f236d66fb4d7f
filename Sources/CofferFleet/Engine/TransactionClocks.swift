import Coffer

/// The clocks of the local changes: one for each transaction, which is above those of all records that it replaces.
///
/// With a clock for each setting, two hosts that change the same settings in a transaction each could both win some of them.
struct TransactionClocks {
  /// By the time of the transaction.
  private var clocks: [Int64: HybridClock] = [:]
  private var times: [SettingPlace: Int64] = [:]

  init(of parts: [[LocalChange]], at now: Int64) {
    for change in parts.joined() where !change.isLost {
      let clock = HybridClock.next(at: change.modified, after: change.record, now: now)
      clocks[change.modified] = max(clock, clocks[change.modified] ?? clock)
      times[SettingPlace(change.key, in: change.collection)] = change.modified
    }
  }

  /// The clock of a change.
  ///
  /// What the carrier has lost keeps its own: with a later one it would win over changes that came after it.
  subscript(change: LocalChange) -> HybridClock {
    if change.isLost, let record = change.record { return record.hybridClock }
    return transactionClock(at: change.modified)
  }

  private func transactionClock(at time: Int64) -> HybridClock { clocks[time] ?? HybridClock(milliseconds: time) }

  /// The clock of the last change of a setting; nil if it was not changed.
  subscript(key: String, in collection: String) -> HybridClock? {
    times[SettingPlace(key, in: collection)].map(transactionClock)
  }
}

extension LocalDeclaration {
  /// The clock of the change.
  func clock(at now: Int64) -> HybridClock {
    if isLost, let record { return record.hybridClock }
    return HybridClock.next(at: modified, after: record, now: now)
  }
}

extension HybridClock {
  /// A clock further ahead is not followed, wins nothing, and is reported.
  static let toleratedLead: Int64 = 300_000

  func isAhead(of now: Int64) -> Bool { milliseconds > now + Self.toleratedLead }

  /// The clock for a change that supersedes a row.
  static func next(at modified: Int64, after row: StoredRecord?, now: Int64) -> HybridClock {
    let earlier = row.map { HybridClock(rawValue: UInt64(bitPattern: $0.clock)) }
    return HybridClock(milliseconds: modified, after: earlier.flatMap { $0.isAhead(of: now) ? nil : $0 })
  }
}
