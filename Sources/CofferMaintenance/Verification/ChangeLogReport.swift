import Coffer

/// What a look at the change log found.
public struct ChangeLogReport: Sendable {
  /// How many commits it holds.
  public let count: Int
  /// The numbers of the first and the last of them; nil for an empty log.
  public let commits: ClosedRange<CommitNumber>?
  /// The last commit for which the record outside of the store vouches, with all before it; nil without a record,
  /// and if the log no longer has its commit.
  ///
  /// Without one, only the chain vouches for the log, and anyone with the store's key can rebuild that.
  package let recordedCommit: CommitNumber?
  /// The commit of a record that vouches for nothing any more, because the log begins after that commit.
  package let passedCommit: CommitNumber?
  /// The commits that erased collections, see `ReadWriteTransaction.erase(collection:)`.
  package let erasures: [CommitNumber]
  /// How many earlier commits have lost keys to them.
  package let emptiedCount: Int
  /// The problems found.
  public let problems: [VerificationProblem]

  init(_ check: ChangeLogCheck) {
    count = check.count
    commits = check.commits
    recordedCommit = check.recordedCommit
    passedCommit = check.passedCommit
    erasures = check.erasures
    emptiedCount = check.emptiedCount
    problems = check.problems.map { VerificationProblem(.changeLog, $0) }
  }
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
    try makeConnection().perform { session in
      let record = session.freshnessRecord
      return ChangeLogReport(
        try session.read { try CofferError.translating { try session.checkLog(against: record) } })
    }
  }
}
