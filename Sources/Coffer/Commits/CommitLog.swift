import CofferCrypto
import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The change log as this process reads it: each commit is decoded once, and is completed with the names of its collections
/// and the details that only its writer knows.
///
/// It is read at different times: by the feed when it is woken, by a proxy when the commit counter has changed, at the end
/// of a long-lived read, by `changes(since:)`. All of them get the same `Commit`.
final class CommitLog: Sendable {
  /// What the writer of a commit knows besides the row.
  struct OwnCommit: Sendable {
    let connection: ConnectionID?
    let changes: ChangeSet
    let names: [Int64: String]
    let attachment: (any Sendable)?
  }

  private let writer: Int64
  private let state = Lock(State())

  /// A structure: if the lock held a dictionary directly, the runtime would look up its type on release, searching all
  /// conformances.
  private struct State {
    /// The names of the collections by ID, including removed ones, as far as they were seen.
    var names: [Int64: String] = [:]
    var ownCommits: [CommitNumber: OwnCommit] = [:]
    var decoded: [CommitNumber: Commit] = [:]
  }

  /// How many of our own commits are kept for readers that have not asked for them yet.
  private static let ownCommitCount: CommitNumber = 1024
  /// How many decoded commits are kept; those with more keys are not.
  private static let decodedCount: CommitNumber = 64
  private static let decodedKeyCount = 1000

  /// - Parameter writer: Identifies the commits of this database.
  init(writer: Int64) {
    self.writer = writer
  }

  // MARK: For the writer

  /// Called with the write lock held, before the commit, so that no reader finds the commit's row without it.
  func willCommit(_ number: CommitNumber, _ commit: OwnCommit) {
    state.withLock { Self.add(commit, number, to: &$0.ownCommits, keeping: Self.ownCommitCount) }
  }

  func didNotCommit(_ number: CommitNumber) {
    state.withLock { _ = $0.ownCommits.removeValue(forKey: number) }
  }

  /// Drops the details that only listeners need.
  func forgetOwnCommits() {
    state.withLock { state in
      state.ownCommits = [:]
      state.decoded = [:]
    }
  }

  private static func add<Element>(
    _ element: Element, _ number: CommitNumber, to elements: inout [CommitNumber: Element], keeping count: CommitNumber
  ) {
    elements[number] = element
    guard elements.count > 2 * count else { return }
    elements = elements.filter { $0.key > number - count }
  }

  // MARK: For readers

  /// Reads the names of the existing collections, so that a later removal has a name.
  func learnNames(_ connection: SQLiteConnection) throws {
    let names = try Collections(connection: connection).names()
    state.withLock { $0.names.merge(names) { $1 } }
  }

  /// Forgets everything: the store was rolled back to an earlier state, and numbers and IDs will be reused.
  func forgetEverything() {
    state.withLock { $0 = State() }
  }

  /// The commits after a number, as of the transaction of `connection`, oldest first; nil if some of them are no longer in
  /// the log, or it ends before that number.
  ///
  /// - Parameter isUnnamedRemovalOfAll: Whether a removed collection without a name may be any; otherwise no reader can have
  ///   seen it.
  func commits(
    after number: CommitNumber, _ connection: SQLiteConnection, isUnnamedRemovalOfAll: Bool = false
  ) throws -> [Commit]? {
    let rows = try ChangeLog(connection: connection).rows(after: number, row)
    return try rows.map { rows in
      let commits = try self.commits(rows, connection)
      return isUnnamedRemovalOfAll ? commits.map(\.withUnnamedRemovalOfAll) : commits
    }
  }

  /// The commits after a number that are still in the log, oldest first.
  func existingCommits(after number: CommitNumber, _ connection: SQLiteConnection) throws -> [Commit] {
    try commits(ChangeLog(connection: connection).existingRows(after: number, row).rows, connection)
  }

  private enum Row {
    case decoded(Commit)
    case new(ChangeLog.Row, ChangeSet)
  }

  private func row(_ row: ChangeLog.Row, _ changes: () throws -> ChangeSet) throws -> Row {
    let known = state.withLock { $0.decoded[row.identity.number] }
    if let known, known.identity == row.identity { return .decoded(known) }
    return .new(row, try changes())
  }

  private func commits(_ rows: [Row], _ connection: SQLiteConnection) throws -> [Commit] {
    let missesNames = rows.contains { if case .new(_, let changes) = $0 { self.missesNames(changes) } else { false } }
    if missesNames { try learnNames(connection) }
    return state.withLock { state in rows.map { commit($0, &state) } }
  }

  private func missesNames(_ changes: ChangeSet) -> Bool {
    state.withLock { state in changes.collections.keys.contains { state.names[$0] == nil } }
  }

  /// A commit, completed with what is known of it here.
  private func commit(_ row: Row, _ state: inout State) -> Commit {
    let new: ChangeLog.Row
    let changes: ChangeSet
    switch row {
    case .decoded(let commit): return commit
    case .new(let found, let itsChanges): (new, changes) = (found, itsChanges)
    }
    let (identity, isOwn) = (new.identity, new.writer == writer)
    let actions = new.action.map(CommitAction.all) ?? []
    let erasedNames = actions.filter { $0.isErasure && !$0.isTruncated }.compactMap(\.collection)
    let own = isOwn ? state.ownCommits[identity.number] : nil
    let all = own?.changes ?? changes
    var removesUnnamed = false
    var keyCount = 0
    var collections: [ByteString: ChangeSet.CollectionChange] = [:]
    // A collection that was removed and created again has two IDs, the later one higher.
    for (id, change) in all.collections.sorted(by: { $0.key < $1.key }) where !change.isEmpty {
      keyCount += change.keys.count + change.clearedKeys.count
      // No name: created and removed again before anyone could see it.
      let name = own?.names[id] ?? state.names[id] ?? (change.isErased && erasedNames.count == 1 ? erasedNames[0] : nil)
      guard let name = name.map(ByteString.init) else {
        removesUnnamed = removesUnnamed || change.isCleared
        continue
      }
      collections[name] = collections[name]?.followed(by: change) ?? change
    }
    let commit = Commit(
      position: CommitPosition(identity.number, new.link),
      origin: own?.connection.map { .connection($0) } ?? (isOwn ? .thisDatabase : .elsewhere),
      time: Date(milliseconds: new.time), author: new.author.flatMap(Author.init(text:)), actions: actions,
      attachments: own?.attachment.map { [$0] } ?? [], isEverything: all.isAllCleared,
      collections: collections, identity: identity, removesUnnamed: removesUnnamed)
    if keyCount <= Self.decodedKeyCount {
      Self.add(commit, identity.number, to: &state.decoded, keeping: Self.decodedCount)
    }
    return commit
  }
}
