import Coffer

/// What a look at the change log found.
public struct ChangeLogReport: Sendable {
  /// How many commits it holds.
  public let count: Int
  /// The numbers of the first and the last of them; nil for an empty log.
  public let commits: ClosedRange<UInt64>?
  /// Whether its rows are chained; those of a store of a former version are with its next commit.
  public let isChained: Bool
  /// What is wrong, in sentences; empty when nothing is.
  public let problems: [String]
}

extension Database {
  /// Looks whether commits were taken out of the change log, changed in it, or put between.
  ///
  /// ```swift
  /// for problem in try database.verifyChangeLog().problems { print(problem) }
  /// ```
  ///
  /// Each row has a digest of itself and the row before. Anyone with the store's key can rebuild all of them; that shows
  /// where the newest one is remembered outside of the store, see `Database.Options.freshness`.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func verifyChangeLog() throws -> ChangeLogReport {
    let check = try makeConnection().perform { session in
      try session.read { try CofferError.translating { try session.changeLog.checkChain() } }
    }
    return ChangeLogReport(
      count: check.count,
      commits: check.commits.map { UInt64(clamping: $0.lowerBound)...UInt64(clamping: $0.upperBound) },
      isChained: check.isChained, problems: check.problems)
  }
}
