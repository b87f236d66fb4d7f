import CofferCrypto
import CofferStorage

/// The table `changes`: one row a commit.
///
/// Its 16 random bytes blind SQLite's running checksum of the log, which covers plaintext and stands in clear in the
/// shared memory: a guessed value cannot be confirmed by it.
package struct ChangeLog {
  let connection: SQLiteConnection

  package init(connection: SQLiteConnection) {
    self.connection = connection
  }

  /// How many commits are remembered, and how many bytes of their keys.
  static let maximumRowCount: Int64 = 10_000
  static let maximumByteCount: Int64 = 4 << 20
  /// Old rows are dropped once in so many commits; between, the log may exceed its bounds by as many rows.
  static let sweepInterval: Int64 = 64
  /// Numbers above this make no sense: no store commits so often, or so much.
  ///
  /// What is below can be added to without a thought.
  package static let maximumNumber: Int64 = 1 << 60

  /// The number of the last commit, which is the snapshot a reader sees.
  package func lastSequence() throws -> Int64 {
    try max(0, end().sequence)
  }

  /// What the next row goes on from.
  struct End {
    /// The number of the last commit; -1 before the first.
    let sequence: Int64
    let total: Int64
    /// What tells that commit from another one of its number.
    let mark: [UInt8]
  }

  /// What tells the commit of this number from another one that has it; nil where the log does not hold it, or not any more.
  func mark(of sequence: Int64) throws -> [UInt8]? {
    let statement = try connection.statement("SELECT noise FROM changes WHERE sequence = ?")
    statement.bind(sequence, at: 1)
    return try statement.first { $0.bytes(0) }
  }

  /// The end of the log, which stays where it is as long as the write lock is held and nothing is appended.
  func end() throws -> End {
    try connection.statement("SELECT sequence, total, noise FROM changes ORDER BY sequence DESC LIMIT 1").first { row in
      let end = End(sequence: row.integer(0), total: row.integer(1), mark: row.bytes(2))
      guard (0...Self.maximumNumber).contains(end.sequence), (0...Self.maximumNumber).contains(end.total) else {
        throw StorageError.damaged(
          part: "change log", reason: "it ends with commit \(end.sequence), of \(end.total) bytes")
      }
      return end
    } ?? End(sequence: -1, total: 0, mark: [])
  }

  /// Appends a row; `willAppend` hears first which one.
  ///
  /// - Parameter end: The end of the log, where it is known.
  /// - Returns: The new end.
  @discardableResult
  func append(
    _ changes: ChangeSet, after end: End? = nil, time: Int64, writer: Int64, author: String? = nil,
    willAppend: (CommitIdentity) -> Void = { _ in }
  ) throws -> End {
    let end = try end ?? self.end()
    let sequence = end.sequence + 1
    let noise = try connection.randomBytes(count: 16)
    willAppend(CommitIdentity(sequence: sequence, noise: noise))
    let keys = changes.packed
    let total = end.total + Int64(keys.count + (author?.utf8.count ?? 0))
    let statement = try connection.statement("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)")
    statement.bind(sequence, at: 1)
    statement.bind(noise, at: 2)
    statement.bind(time, at: 3)
    statement.bind(writer, at: 4)
    statement.bind(total, at: 6)
    try keys.withUnsafeBytes { keys in
      try (author ?? "").withUTF8Bytes { text in
        if author != nil { statement.bind(borrowingText: text, at: 5) }
        statement.bind(borrowing: keys, at: 7)
        try statement.run()
      }
    }
    if sequence % Self.sweepInterval == 0 { try sweep(sequence: sequence, total: total) }
    return End(sequence: sequence, total: total, mark: noise)
  }

  /// Begins the log anew, with a row for nothing, behind `sequence`.
  package func begin(after sequence: Int64) throws {
    try connection.statement("DELETE FROM changes").run()
    try append(
      ChangeSet(), after: End(sequence: sequence, total: 0, mark: []), time: Clock.millisecondsSince1970, writer: 0)
  }

  /// Drops the oldest rows beyond the bounds.
  ///
  /// `total` goes up with `sequence`: the search for the first row to stay reads only those that go.
  private func sweep(sequence: Int64, total: Int64) throws {
    let statement = try connection.statement(
      """
      DELETE FROM changes WHERE sequence < max(?1, (
        SELECT sequence FROM changes WHERE total >= ?2 ORDER BY sequence LIMIT 1))
      """)
    statement.bind(sequence - Self.maximumRowCount + 1, at: 1)
    statement.bind(total - Self.maximumByteCount, at: 2)
    try statement.run()
  }

  /// The commits after `sequence`, oldest first; nil when some of them are no longer in the log, or it ends before
  /// `sequence`: the store was put back to an earlier state.
  ///
  /// - Parameter make: Makes of a row what is wanted; its changes are decoded only where they are asked for.
  func rows<Made>(
    after sequence: Int64, _ make: (_ row: Row, _ changes: () throws -> ChangeSet) throws -> Made
  ) throws -> [Made]? {
    let (first, rows) = try existingRows(after: sequence, make)
    guard let first else { return try end().sequence >= sequence ? [] : nil }
    return first == sequence + 1 ? rows : nil
  }

  /// A row, but for its changes.
  struct Row {
    let identity: CommitIdentity
    let time: Int64
    let writer: Int64
    let author: String?
  }

  /// The commits after `sequence` that are still in the log, oldest first, and the number of the first one.
  func existingRows<Made>(
    after sequence: Int64, _ make: (_ row: Row, _ changes: () throws -> ChangeSet) throws -> Made
  ) throws -> (first: Int64?, rows: [Made]) {
    var rows: [Made] = []
    var first: Int64?
    let statement = try connection.statement(
      "SELECT sequence, noise, time, writer, author, keys FROM changes WHERE sequence > ? ORDER BY sequence")
    statement.bind(sequence, at: 1)
    try statement.query { row in
      let identity = CommitIdentity(sequence: row.integer(0), noise: row.bytes(1))
      first = first ?? identity.sequence
      let commit = Row(
        identity: identity, time: row.integer(2), writer: row.integer(3), author: row.optionalText(4))
      rows.append(
        try make(commit) {
          guard let changes = ChangeSet(packed: row.bytes(5)) else {
            throw StorageError.damaged(part: "change log", reason: "commit \(identity.sequence) does not parse")
          }
          return changes
        })
    }
    return (first, rows)
  }

  /// Leaves nothing of a removed collection in the log but its id; nil stands for all of them.
  func forget(_ collection: Int64?) throws {
    var rewritten: [(sequence: Int64, keys: [UInt8])] = []
    // SQLite skips nearly all rows that don't mention the collection, and a look at the bytes the others.
    let statement = try connection.statement(
      "SELECT sequence, keys FROM changes WHERE ?1 IS NULL OR instr(keys, ?1)")
    statement.bind(collection.map(ChangeSet.packed(id:)), at: 1)
    try statement.query { row in
      guard row.withBytes(1, { ChangeSet.lists(collection, packed: $0) }),
        let changes = ChangeSet(packed: row.bytes(1))?.forgetting(collection)
      else { return }
      rewritten.append((row.integer(0), changes.packed))
    }
    let update = try connection.statement("UPDATE changes SET keys = ?2 WHERE sequence = ?1")
    for row in rewritten {
      update.bind(row.sequence, at: 1)
      update.bind(row.keys, at: 2)
      try update.run()
    }
  }
}

/// Tells a commit from one that failed and another that took its number.
struct CommitIdentity: Equatable, Sendable {
  let sequence: Int64
  let noise: [UInt8]
}
