import CofferCrypto
import CofferStorage

/// The table `changes`: one row per commit.
///
/// Its 16 random bytes blind SQLite's running checksum of the log, which covers plaintext and is not encrypted in the
/// shared memory: it cannot confirm a guessed value.
package struct ChangeLog {
  let connection: SQLiteConnection
  private let chain = ChangeChain()

  package init(connection: SQLiteConnection) {
    self.connection = connection
  }

  /// The maximum number of commits, and of bytes of their keys.
  static let maximumRowCount: Int64 = 10_000
  static let maximumByteCount: Int64 = 4 << 20
  /// Old rows are dropped once per this many commits; in between, the log may exceed its bounds by as many rows.
  static let sweepInterval: Int64 = 64
  /// Higher numbers are invalid: no store commits this often, or this much.
  ///
  /// Additions to smaller numbers cannot overflow.
  package static let maximumNumber: Int64 = 1 << 60

  /// The number of the last commit, the snapshot that a reader sees.
  package func lastSequence() throws -> Int64 {
    let last = try connection.statement("SELECT sequence, total FROM changes ORDER BY sequence DESC LIMIT 1").first {
      try Self.check(End(sequence: $0.integer(0), total: $0.integer(1), link: .origin)).sequence
    }
    return max(0, last ?? 0)
  }

  private static func check(_ end: End) throws -> End {
    guard (0...maximumNumber).contains(end.sequence), (0...maximumNumber).contains(end.total) else {
      throw StorageError.damaged(
        part: "change log",
        reason: "its last row has an impossible number or size (\(end.sequence), \(end.total) bytes)")
    }
    return end
  }

  /// The state from which the next row continues.
  struct End {
    /// The number of the last commit; -1 before the first.
    let sequence: Int64
    let total: Int64
    /// The link of the last row, which identifies that commit and all before it.
    let link: ChangeLink

    static let none = End(sequence: -1, total: 0, link: .origin)
  }

  /// The link of the commit with this number; nil if the log does not have it, or no longer.
  func link(of sequence: Int64) throws -> ChangeLink? {
    let statement = try connection.statement("SELECT link FROM changes WHERE sequence = ?")
    statement.bind(sequence, at: 1)
    return try statement.first { try $0.link(0) }
  }

  /// The end of the log, in a write transaction; it stays the same until a row is appended.
  func end() throws -> End {
    try connection.statement("SELECT sequence, total, link FROM changes ORDER BY sequence DESC LIMIT 1").first { row in
      try Self.check(End(sequence: row.integer(0), total: row.integer(1), link: row.link(2)))
    } ?? .none
  }

  /// Appends a row; `willAppend` is called with its number before.
  ///
  /// - Parameter end: The end of the log, if known.
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
    let row = ChangeChain.Row(
      sequence: sequence, noise: noise, time: time, writer: writer, author: author, total: total)
    let link = try chain.link(row, keys, after: end.link)
    try insert(row, keys, link)
    if sequence % Self.sweepInterval == 0 { try sweep(sequence: sequence, total: total) }
    return End(sequence: sequence, total: total, link: link)
  }

  private func insert(_ row: ChangeChain.Row, _ keys: [UInt8], _ link: ChangeLink) throws {
    let statement = try connection.statement("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)")
    statement.bind(row.sequence, at: 1)
    statement.bind(row.time, at: 3)
    statement.bind(row.writer, at: 4)
    statement.bind(row.total, at: 6)
    // SQLite copies nothing of these.
    try row.noise.withUnsafeBytes { noise in
      try keys.withUnsafeBytes { keys in
        try link.withUnsafeBytes { link in
          try (row.author ?? "").withUTF8Bytes { author in
            statement.bind(borrowing: noise, at: 2)
            if row.author != nil { statement.bind(borrowingText: author, at: 5) }
            statement.bind(borrowing: keys, at: 7)
            statement.bind(borrowing: link, at: 8)
            try statement.run()
          }
        }
      }
    }
  }

  /// Restarts the log with an empty row, after `sequence`.
  package func begin(after sequence: Int64) throws {
    try connection.statement("DELETE FROM changes").run()
    try Metadata(connection: connection).setLogStart(nil)
    try append(
      ChangeSet(), after: End(sequence: sequence, total: 0, link: .origin),
      time: Clock.millisecondsSince1970, writer: 0)
  }

  /// Drops the oldest rows beyond the bounds.
  ///
  /// `total` increases with `sequence`: the search for the first row to keep reads only the dropped ones.
  private func sweep(sequence: Int64, total: Int64) throws {
    let statement = try connection.statement(
      """
      SELECT sequence, total, link FROM changes WHERE sequence < max(?1, (
        SELECT sequence FROM changes WHERE total >= ?2 ORDER BY sequence LIMIT 1)) ORDER BY sequence DESC LIMIT 1
      """)
    statement.bind(sequence - Self.maximumRowCount + 1, at: 1)
    statement.bind(total - Self.maximumByteCount, at: 2)
    let dropped = try statement.first { try End(sequence: $0.integer(0), total: $0.integer(1), link: $0.link(2)) }
    guard let dropped else { return }
    // The link before the first remaining row.
    try Metadata(connection: connection).setLogStart(dropped)
    let deletion = try connection.statement("DELETE FROM changes WHERE sequence <= ?")
    deletion.bind(dropped.sequence, at: 1)
    try deletion.run()
  }

  /// The commits after `sequence`, oldest first; nil when some of them are no longer in the log, or it ends before
  /// `sequence`: the store was put back to an earlier state.
  ///
  /// - Parameter make: Converts a row; its changes are decoded only on request.
  func rows<Made>(
    after sequence: Int64, _ make: (_ row: Row, _ changes: () throws -> ChangeSet) throws -> Made
  ) throws -> [Made]? {
    let (first, rows) = try existingRows(after: sequence, make)
    guard let first else { return try end().sequence >= sequence ? [] : nil }
    return first == sequence + 1 ? rows : nil
  }

  /// A row, without its changes.
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

  /// Removes everything about a removed collection from the log, except its ID; nil for all of them.
  func forget(_ collection: Int64?) throws {
    var rows: [(sequence: Int64, keys: [UInt8], mark: [UInt8])] = []
    // SQLite skips nearly all rows that don't mention the collection, and a check of the bytes the others.
    let statement = try connection.statement(
      "SELECT sequence, keys, link FROM changes WHERE ?1 IS NULL OR instr(keys, ?1)")
    statement.bind(collection.map(ChangeSet.packed(id:)), at: 1)
    try statement.query { row in
      guard row.withBytes(1, { ChangeSet.lists(collection, packed: $0) }),
        let changes = ChangeSet(packed: row.bytes(1))?.forgetting(collection)
      else { return }
      let keys = changes.packed
      rows.append((row.integer(0), keys, try chain.rewritten(keys, link: row.link(2))))
    }
    let update = try connection.statement("UPDATE changes SET keys = ?2, rewritten = ?3 WHERE sequence = ?1")
    for row in rows {
      update.bind(row.sequence, at: 1)
      update.bind(row.keys, at: 2)
      update.bind(row.mark, at: 3)
      try update.run()
    }
  }
}

// MARK: - The chain

extension ChangeLog {
  /// Checks that each row follows the previous one, and is unchanged.
  package func checkChain() throws -> ChangeLogCheck {
    var check = ChangeLogCheck(isChained: try Schema.version(connection).isChained)
    let start = try Metadata(connection: connection).logStart() ?? .none
    var previous = start
    let statement =
      check.isChained
      ? try connection.statement(
        "SELECT sequence, noise, time, writer, author, total, keys, link, rewritten FROM changes ORDER BY sequence")
      : try connection.statement(
        "SELECT sequence, noise, time, writer, author, total, keys, x'', NULL FROM changes ORDER BY sequence")
    try statement.query { row in
      let link = row.withBytes(7, ChangeLink.init)
      try check.add(
        row.change, row.bytes(6), link: link, rewritten: row.isNull(8) ? nil : row.bytes(8), after: previous, by: chain)
      previous = End(sequence: row.integer(0), total: row.integer(5), link: link ?? .origin)
    }
    check.checkStart(start, previous)
    return check
  }

  /// Rebuilds the log of a previous version with a chain, in the current transaction.
  func addChain(_ create: () throws -> Void) throws {
    var rows: [(row: ChangeChain.Row, keys: [UInt8])] = []
    try connection.statement(
      "SELECT sequence, noise, time, writer, author, total, keys FROM changes ORDER BY sequence"
    ).query { rows.append(($0.change, $0.bytes(6))) }
    try create()
    var link = ChangeLink.origin
    for (row, keys) in rows {
      link = try chain.link(row, keys, after: link)
      try insert(row, keys, link)
    }
  }
}

extension Statement.Row {
  /// - Throws: `StorageError.damaged`.
  fileprivate func link(_ column: Int32) throws -> ChangeLink {
    guard let link = withBytes(column, ChangeLink.init) else {
      throw StorageError.damaged(part: "change log", reason: "a link is not of \(ChangeLink.byteCount) bytes")
    }
    return link
  }

  /// The first columns of a row of the change log.
  fileprivate var change: ChangeChain.Row {
    ChangeChain.Row(
      sequence: integer(0), noise: bytes(1), time: integer(2), writer: integer(3), author: optionalText(4),
      total: integer(5))
  }
}

/// Distinguishes a commit from a failed one whose number another one took.
package struct CommitIdentity: Equatable, Sendable {
  let sequence: Int64
  let noise: [UInt8]
}
