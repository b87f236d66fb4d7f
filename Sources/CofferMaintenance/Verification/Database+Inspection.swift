import Coffer
import CofferStorage

/// What is known of an open store without reading its values.
public struct DatabaseStatus: Sendable {
  /// The path of the store.
  public let path: String
  /// The version of the file format.
  public let formatVersion: Int
  /// The random id that the store got when it was created, in hexadecimal.
  public let storeID: String
  /// The size of a page in bytes.
  public let pageSize: Int
  /// How many pages the database has, the log's included.
  public let pageCount: Int
  /// The size of the log in bytes; 0 when there is none.
  public var logByteCount: Int { log.byteCount }
  /// What the log holds, and whether it recovers whole.
  public let log: LogStatus
  /// What opens the store.
  public let slots: [SlotInfo]
  /// The number of the last commit.
  public let snapshot: UInt64
  /// Under how many keys pages may stand: one, and more while a re-encryption is unfinished.
  public let epochCount: Int
  /// What lets others at the files, in sentences: modes wider than 0600, a folder that others can write.
  public let fileProblems: [String]
  /// What opening had to leave out because the log did not authenticate, in a sentence; nil when nothing was lost.
  public let logProblem: String?
  /// What stands in the file behind the last page, in a sentence; empty when there is nothing, as there should be.
  public let tailProblems: [String]
  /// Which of the envelope's two copies, 0 and 1, are damaged.
  ///
  /// One is no loss; the other one serves.
  public let damagedEnvelopeCopies: [Int]
  /// What is no problem and yet worth knowing, in sentences: a passphrase stretched less than it would be today, a
  /// re-encryption that is not finished, files that were left over.
  public let notes: [String]
}

extension Database {
  /// Looks at the store without reading its values.
  ///
  /// - Throws: `CofferError.unsupported` for a store in memory; `.closed`, `.damaged` or `.inputOutput`.
  public func status() throws -> DatabaseStatus {
    let store = try storeOnDisk()
    return try makeConnection().perform { session in
      try session.read {
        try CofferError.translating {
          DatabaseStatus(
            path: path, formatVersion: Int(Layout.formatVersion),
            storeID: HexText.text(store.storeID),
            pageSize: Layout.pageByteCount,
            pageCount: try session.connection.statement("PRAGMA page_count").first { Int($0.integer(0)) } ?? 0,
            log: try LogStatus(of: store, committed: session.connection.committedFrameCount),
            slots: store.envelope.slots.map(SlotInfo.init),
            snapshot: try session.snapshot(), epochCount: store.envelope.epochs.count,
            fileProblems: store.fileProblems(), logProblem: logProblem,
            tailProblems: PageVerification.problems(tailByteCount: try store.tailByteCount()),
            damagedEnvelopeCopies: try store.damagedEnvelopeCopies(), notes: store.notes())
        }
      }
    }
  }

  /// Reads and authenticates every page, lets SQLite check its structures, looks whether everything belongs together, and
  /// decodes every value and metadata, sealed ones where the vault is unlocked.
  ///
  /// While it is locked, the list of what is sealed is compared with what the collections say, and not authenticated.
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1.
  /// - Throws: What keeps the verification from being made at all; what it finds is in the report.
  public func verify(progress: (Double) -> Void = { _ in }) throws -> VerificationReport {
    let stopwatch = options.meter.map { Stopwatch($0) }
    let store = try storeOnDisk()
    let pages = try CofferError.translating { try store.verifyPages { progress($0 * 0.5) } }
    var problems = pages.problems(opensWithoutKey: store.opensWithoutKey)
    var tables = TableVerification()
    do {
      try makeConnection().perform { session in
        try session.read { try tables.run(session) { progress(0.5 + $0 * 0.5) } }
      }
    } catch CofferError.damaged(let part, let reason) {
      // A page of the database file is in the list already.
      if !pages.damaged.contains(where: { part == "page \($0)" }) {
        problems.append("The \(part) is damaged: \(reason).")
      }
    }
    progress(1)
    problems += tables.problems
    stopwatch?.record { .verification(problemCount: problems.count, duration: $0) }
    return VerificationReport(pages, tables.itemCount, tables.historicItemCount, problems)
  }

  /// Reads and authenticates every page of a store, whether it still opens or not; its values are not looked at.
  ///
  /// ```swift
  /// do {
  ///   report = try Database.open(at: path, key: key).verify()
  /// } catch CofferError.damaged {
  ///   report = try Database.verifyPages(at: path, key: key)
  /// }
  /// ```
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1.
  /// - Throws: `CofferError.damaged` when both copies of the envelope are; `.wrongKey`, `.storeNotFound` and what else
  ///   keeps anything from being read.
  public static func verifyPages(
    at path: String, key: KeySource, progress: (Double) -> Void = { _ in }
  ) throws -> VerificationReport {
    try CofferError.translating {
      let store = try Store.open(at: path, key: key, isReadOnly: true)
      let pages = try store.verifyPages(progress: progress)
      let log = try LogStatus(of: store)
      let problems = pages.problems(opensWithoutKey: store.opensWithoutKey) + store.fileProblems() + log.problems
      return VerificationReport(pages, 0, 0, problems)
    }
  }
}

/// What the log of a store holds: the commits that have not been folded into the database file yet.
public struct LogStatus: Sendable, Equatable {
  /// Its size; 0 when there is none.
  public let byteCount: Int
  /// How many frames, each a page, belong to whole commits.
  public let frameCount: Int
  /// How many frames are lost, because they are damaged or stand behind a damaged one.
  public let lostFrameCount: Int
  /// Whether its header is damaged, so that all of it is lost when the store is opened.
  public let isHeaderDamaged: Bool

  /// Whether all that was committed comes back.
  public var isWhole: Bool { lostFrameCount == 0 && !isHeaderDamaged }

  /// - Parameter committed: How many frames belong to commits, as those know who have the store open. Where they are all
  ///   there, and the very last frame is torn, it is of a transaction that failed, for want of room, and nobody's loss.
  init(of store: Store, committed: Int? = nil) throws {
    var scan = try LogScan(of: store)
    // Another process may be writing frames just now.
    for _ in 0..<2 where scan.lostFrameCount > 0 || scan.isHeaderDamaged { scan = try LogScan(of: store) }
    byteCount = scan.byteCount
    frameCount = scan.committedFrameCount
    let isTornEnd = scan.firstDamagedFrame == scan.committedFrameCount + scan.lostFrameCount
    lostFrameCount = isTornEnd && committed == scan.committedFrameCount ? 0 : scan.lostFrameCount
    isHeaderDamaged = scan.isHeaderDamaged
  }

  /// What is wrong, in sentences; empty when it is whole.
  public var problems: [String] {
    if isHeaderDamaged { return ["The header of the log does not authenticate, and SQLite takes the log for empty."] }
    guard lostFrameCount > 0 else { return [] }
    return ["\(lostFrameCount) frames of the log are lost: from the first damaged one on it cannot be read."]
  }
}
