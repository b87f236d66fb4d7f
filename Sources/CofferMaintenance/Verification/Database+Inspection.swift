import Coffer
import CofferStorage

/// The state of an open store, determined without reading its values.
public struct DatabaseStatus: Sendable {
  /// The path of the store.
  public let path: String
  /// The version of the file format.
  package let formatVersion: Int
  /// The random id that the store got when it was created, in hexadecimal.
  public let storeID: String
  /// The size of a page in bytes.
  package let pageSize: Int
  /// The number of pages in the database, including those in the log.
  public let pageCount: Int
  /// The size of the log in bytes; 0 when there is none.
  public var logByteCount: Int { log.byteCount }
  /// The state of the log, and whether it can be recovered whole.
  public let log: LogStatus
  /// The slots that open the store.
  public let slots: [SlotInfo]
  /// The number of the last commit.
  public let lastCommit: CommitNumber
  /// The number of keys that pages may be sealed under: one, or more while a re-encryption is unfinished.
  package let epochCount: Int
  /// Permissions that let others access the files, as sentences: modes wider than 0600, a folder writable by others.
  public let fileProblems: [String]
  /// What opening left out because the log did not authenticate, as a sentence; nil if nothing was lost.
  public let logProblem: String?
  /// Bytes after the last page of the file, as sentences; empty for a normal file.
  package let tailProblems: [String]
  /// The damaged ones of the envelope's two copies, 0 and 1.
  ///
  /// A single damaged copy is no loss; the other one is used.
  package let damagedEnvelopeCopies: [Int]
  /// The copies that are whole, and older than the other one.
  package let outdatedEnvelopeCopies: [Int]
  /// What keeps the keys from being used or changed, as sentences.
  package let keyProblems: [String]
  /// Notes that are not problems, as sentences: a passphrase stretched less than today's default, an unfinished
  /// re-encryption, leftover files.
  public let notes: [String]
}

extension Database {
  /// Inspects the store without reading its values.
  ///
  /// - Throws: `CofferError.unsupported` for a store in memory; `.closed`, `.damaged` or `.inputOutput`; `.wrongKey`,
  ///   `.rootKeyUnverified` or `.rolledBack` where others have replaced the keys, or the envelope.
  public func status() throws -> DatabaseStatus {
    let store = try storeOnDisk()
    return try makeConnection().perform { session in
      try session.read {
        try CofferError.translating {
          try store.refresh()
          let outdatedCopies = try store.outdatedEnvelopeCopies()
          return DatabaseStatus(
            path: path, formatVersion: Int(Layout.formatVersion),
            storeID: HexText.text(store.storeID),
            pageSize: Layout.pageByteCount,
            pageCount: try session.connection.statement("PRAGMA page_count").first { Int($0.integer(0)) } ?? 0,
            log: try LogStatus(of: store, connection: session.connection),
            slots: store.envelope.slots.map(SlotInfo.init),
            lastCommit: try session.commitNumber(), epochCount: store.envelope.epochs.count,
            fileProblems: store.fileProblems(), logProblem: logProblem,
            tailProblems: PageVerification.problems(tailByteCount: try store.tailByteCount()),
            damagedEnvelopeCopies: try store.damagedEnvelopeCopies().filter { !outdatedCopies.contains($0) },
            outdatedEnvelopeCopies: outdatedCopies, keyProblems: store.keyProblems(),
            notes: store.notes() + [logNote].compactMap(\.self))
        }
      }
    }
  }

  /// Reads and authenticates every page, has SQLite check its structures, checks references between tables, and
  /// decodes every value and its metadata, sealed ones if the vault is unlocked.
  ///
  /// While the vault is locked, the list of sealed collections is compared with the collections' own flags, but not
  /// authenticated.
  ///
  /// - Parameter progress: Called with the fraction done, from 0 to 1.
  /// - Throws: Errors that prevent the verification; problems it finds are in the report.
  public func verify(progress: (Double) -> Void = { _ in }) throws -> VerificationReport {
    let stopwatch = options.meter.map { Stopwatch($0) }
    let store = try storeOnDisk()
    let pages = try CofferError.translating { try store.verifyPages { progress($0 * 0.5) } }
    var problems = pages.problems(opensWithoutKey: store.opensWithoutKey)
    var tables = TableVerification()
    do {
      try makeConnection().perform { session in
        let record = session.freshnessRecord
        try session.read { try tables.run(session, against: record) { progress(0.5 + $0 * 0.5) } }
      }
    } catch let error as CofferError {
      // Pages of the database file are already in the list.
      if case .damaged(let part, _) = error, pages.damaged.contains(where: { part == "page \($0)" }) {
      } else if let sentence = error.contentsProblem {
        problems.append(.init(.tables, sentence))
      } else {
        throw error
      }
    }
    progress(1)
    problems += tables.problems
    stopwatch?.record { .verification(problemCount: problems.count, duration: $0) }
    return VerificationReport(
      pages, tables.itemCount, tables.historicItemCount, problems, changeLog: tables.changeLog)
  }

  /// Reads and authenticates every page of a store, even one that no longer opens; does not decode its values.
  ///
  /// ```swift
  /// do {
  ///   report = try Database.open(at: path, key: key).verify()
  /// } catch CofferError.damaged {
  ///   report = try Database.verifyPages(at: path, key: key)
  /// }
  /// ```
  ///
  /// - Parameter progress: Called with the fraction done, from 0 to 1.
  /// - Throws: `CofferError.damaged` if both copies of the envelope are damaged; `.wrongKey`, `.storeNotFound` and
  ///   other errors that prevent reading.
  public static func verifyPages(
    at path: String, key: KeySource, progress: (Double) -> Void = { _ in }
  ) throws -> VerificationReport {
    try CofferError.translating {
      let store = try Store.open(at: path, key: key, isReadOnly: true)
      let pages = try store.verifyPages(progress: progress)
      let log = try LogStatus(of: store)
      let problems =
        pages.problems(opensWithoutKey: store.opensWithoutKey)
        + store.fileProblems().map { VerificationProblem(.permissions, $0) }
        + log.problems.map { VerificationProblem(.log, $0) }
      return VerificationReport(pages, 0, 0, problems)
    }
  }
}

/// The state of a store's log: the commits not yet checkpointed into the database file.
public struct LogStatus: Sendable, Equatable {
  /// Its size in bytes; 0 when there is none.
  public let byteCount: Int
  /// The number of frames, each a page, that belong to whole commits.
  package let frameCount: Int
  /// The number of lost frames: damaged, or after a damaged one.
  ///
  /// Frames that were not synced, of which a power cut may leave any part, are not counted.
  package let lostFrameCount: Int
  /// The number of frames of whole commits that the shared memory does not show.
  package let hiddenFrameCount: Int
  /// Whether its header is damaged, so that opening the store loses the whole log.
  package let isHeaderDamaged: Bool

  /// Whether everything committed can be recovered.
  public var isWhole: Bool { lostFrameCount == 0 && !isHeaderDamaged }

  /// How often to look again at a log that another process may be writing.
  private static let lookCount = 10

  /// - Parameter connection: One of the open store, which shows how many frames are committed.
  init(of store: Store, connection: SQLiteConnection? = nil) throws {
    var seen = try LogStatus(lookingAt: store, connection)
    // Another process may be writing frames right now, or be about to publish them.
    for _ in 0..<Self.lookCount where !seen.problems.isEmpty {
      if let quiet = try connection?.withoutWriters({ try LogStatus(lookingAt: store, connection) }) {
        self = quiet
        return
      }
      // A writer looks for hidden frames before it writes: those beyond the index are its own.
      let next = try LogStatus(lookingAt: store, connection, isBeingWritten: true)
      // Whatever it writes meanwhile, what is lost stays so.
      if next == seen { break }
      seen = next
    }
    self = seen
  }

  /// Looks once.
  ///
  /// When all committed frames are present and only the very last frame is torn, it belongs to a transaction that failed on a
  /// full disk, and nothing is lost.
  private init(lookingAt store: Store, _ connection: SQLiteConnection?, isBeingWritten: Bool = false) throws {
    let scan = try LogScan(of: store)
    let committed = connection?.committedFrameCount
    byteCount = scan.byteCount
    frameCount = scan.committedFrameCount
    // Frames of a generation that was checkpointed do not count.
    let isHiding = !isBeingWritten && connection?.generationSalts == scan.salts
    hiddenFrameCount = isHiding ? max(0, scan.committedFrameCount - (committed ?? .max)) : 0
    let isTornEnd = scan.firstDamagedFrame == scan.committedFrameCount + scan.lostFrameCount
    let isUnsynced = !scan.lostSyncedFrames && committed ?? 0 <= scan.committedFrameCount
    lostFrameCount = isUnsynced || isTornEnd && committed == scan.committedFrameCount ? 0 : scan.lostFrameCount
    isHeaderDamaged = scan.isHeaderDamaged
  }

  /// What is wrong, in sentences; empty when it is whole.
  public var problems: [String] {
    if isHeaderDamaged { return ["The header of the log does not authenticate; SQLite treats the log as empty."] }
    if hiddenFrameCount > 0 {
      return [
        "The shared memory hides \(hiddenFrameCount) committed frames of the log: a program died as it committed them, or someone "
          + "put back an earlier state of the memory. The next change finds them."
      ]
    }
    guard lostFrameCount > 0 else { return [] }
    return ["\(lostFrameCount) frames of the log are lost: they follow a damaged frame."]
  }
}
