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
  package static let maximumNumber: CommitNumber = 1 << 60

  /// The number of the last commit that a reader sees.
  package func lastNumber() throws -> CommitNumber {
    let last = try connection.statement("SELECT sequence, total FROM changes ORDER BY sequence DESC LIMIT 1").first {
      try Self.check(End(number: $0.integer(0), total: $0.integer(1), link: .origin)).number
    }
    return max(0, last ?? 0)
  }

  /// The place of the last commit, which a reader sees.
  func lastPosition() throws -> CommitPosition {
    let last = try end()
    return last.number < 0 ? .beginning : CommitPosition(last.number, last.link)
  }

  private static func check(_ end: End) throws -> End {
    guard (0...maximumNumber).contains(end.number), (0...maximumNumber).contains(end.total) else {
      throw StorageError.damaged(
        part: "change log",
        reason: "its last row has an impossible number or size (\(end.number), \(end.total) bytes)")
    }
    return end
  }

  /// The state from which the next row continues.
  struct End {
    /// The number of the last commit; -1 before the first.
    let number: CommitNumber
    let total: Int64
    /// The link of the last row, which identifies that commit and all before it.
    let link: ChangeLink

    static let none = End(number: -1, total: 0, link: .origin)
  }

  /// The link of the commit with this number; nil if the log does not have it, or no longer.
  func link(of number: CommitNumber) throws -> ChangeLink? {
    try connection.statement("SELECT link FROM changes WHERE sequence = ?", number).first { try $0.link(0) }
  }

  /// The same, also of the last row that was dropped because of its age.
  func knownLink(of number: CommitNumber) throws -> ChangeLink? {
    if let link = try link(of: number) { return link }
    guard let start = try Metadata(connection: connection).logStart(), start.number == number else { return nil }
    return start.link
  }

  /// Whether the log continues from the commit with this number and link: it has the row, or dropped it later because of
  /// its age.
  func has(_ number: CommitNumber, _ link: ChangeLink) throws -> Bool {
    if let found = try self.link(of: number) { return found == link }
    guard let start = try Metadata(connection: connection).logStart() else { return false }
    return start.number > number || start.number == number && start.link == link
  }

  /// The end of the log, in a write transaction; it stays the same until a row is appended.
  func end() throws -> End {
    try connection.statement("SELECT sequence, total, link FROM changes ORDER BY sequence DESC LIMIT 1").first { row in
      try Self.check(End(number: row.integer(0), total: row.integer(1), link: row.link(2)))
    } ?? .none
  }

  /// Throws if there is no number for another commit.
  package func checkRoom() throws {
    // The log of a previous version has no links.
    let last = try connection.statement("SELECT sequence, total FROM changes ORDER BY sequence DESC LIMIT 1").first {
      End(number: $0.integer(0), total: $0.integer(1), link: .origin)
    }
    try Self.checkRoom(after: last ?? .none)
  }

  private static func checkRoom(after end: End) throws {
    guard end.number < maximumNumber, end.total < maximumNumber else {
      throw StorageError.damaged(part: "change log", reason: "it has used up all numbers of commits")
    }
  }

  /// Appends a row.
  ///
  /// - Parameter end: The end of the log, if known.
  /// - Returns: What identifies the commit, and the new end.
  @discardableResult
  func append(
    _ changes: ChangeSet, after end: End? = nil, time: Int64, writer: Int64, author: String? = nil,
    action: String? = nil
  ) throws -> (identity: CommitIdentity, end: End) {
    let end = try end ?? self.end()
    try Self.checkRoom(after: end)
    let number = end.number + 1
    let noise = try connection.randomBytes(count: ChangeChain.noiseByteCount)
    let keys = changes.packed
    let total = end.total + ChangeChain.Row.byteCount(keys: keys, author: author, action: action)
    let row = ChangeChain.Row(
      number: number, noise: noise, time: time, writer: writer, author: author, action: action, total: total)
    let seal = try chain.seal(row, keys, after: end)
    try insert(row, keys, seal)
    if number % Self.sweepInterval == 0 { try sweep(number: number, total: total) }
    return (
      CommitIdentity(number: number, noise: noise), End(number: number, total: total, link: seal.link)
    )
  }

  private func insert(_ row: ChangeChain.Row, _ keys: [UInt8], _ seal: ChangeChain.Seal) throws {
    let statement = try connection.statement("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    statement.bind(row.number, at: 1)
    statement.bind(row.time, at: 3)
    statement.bind(row.writer, at: 4)
    statement.bind(row.total, at: 6)
    if let action = row.action { statement.bind(action, at: 8) }
    // SQLite copies nothing of these.
    try row.noise.withUnsafeBytes { noise in
      try keys.withUnsafeBytes { keys in
        try seal.digests.withUnsafeBytes { digests in
          try seal.link.withUnsafeBytes { link in
            try (row.author ?? "").withUTF8Bytes { author in
              statement.bind(borrowing: noise, at: 2)
              if row.author != nil { statement.bind(borrowingText: author, at: 5) }
              statement.bind(borrowing: digests, at: 7)
              statement.bind(borrowing: link, at: 9)
              statement.bind(borrowing: keys, at: 10)
              try statement.run()
            }
          }
        }
      }
    }
  }

  /// Restarts the log with an empty row, after `number`.
  package func begin(after number: CommitNumber) throws {
    try connection.statement("DELETE FROM changes").run()
    try Metadata(connection: connection).setLogStart(nil)
    try append(
      ChangeSet(), after: End(number: number, total: 0, link: .origin),
      time: Clock.millisecondsSince1970, writer: 0, action: CommitAction.text(of: [.salvaged]))
  }

  /// Drops the oldest rows beyond the bounds.
  ///
  /// `total` increases with `number`: the search for the first row to keep reads only the dropped ones.
  private func sweep(number: CommitNumber, total: Int64) throws {
    let dropped = try connection.statement(
      """
      SELECT sequence, total, link FROM changes WHERE sequence < max(?1, (
        SELECT sequence FROM changes WHERE total >= ?2 ORDER BY sequence LIMIT 1)) ORDER BY sequence DESC LIMIT 1
      """, number - Self.maximumRowCount + 1, total - Self.maximumByteCount
    ).first { try End(number: $0.integer(0), total: $0.integer(1), link: $0.link(2)) }
    guard let dropped else { return }
    // The link before the first remaining row.
    try Metadata(connection: connection).setLogStart(dropped)
    try connection.statement("DELETE FROM changes WHERE sequence <= ?", dropped.number).run()
  }

  /// The commits after `number`, oldest first; nil when some of them are no longer in the log, or it ends before
  /// `number`: the store was put back to an earlier state.
  ///
  /// - Parameter make: Converts a row; its changes are decoded only on request.
  func rows<Made>(
    after number: CommitNumber, _ make: (_ row: Row, _ changes: () throws -> ChangeSet) throws -> Made
  ) throws -> [Made]? {
    let (first, rows) = try existingRows(after: number, make)
    guard let first else { return try end().number >= number ? [] : nil }
    return first == number + 1 ? rows : nil
  }

  /// A row, without its changes.
  struct Row {
    let identity: CommitIdentity
    let link: ChangeLink
    let time: Int64
    let writer: Int64
    let author: String?
    let action: String?
  }

  /// The commits after `number` that are still in the log, oldest first, and the number of the first one.
  func existingRows<Made>(
    after number: CommitNumber, _ make: (_ row: Row, _ changes: () throws -> ChangeSet) throws -> Made
  ) throws -> (first: Int64?, rows: [Made]) {
    var rows: [Made] = []
    var first: Int64?
    try connection.statement(
      "SELECT sequence, noise, time, writer, author, action, keys, link FROM changes WHERE sequence > ? ORDER BY sequence",
      number
    ).query { row in
      let identity = CommitIdentity(number: row.integer(0), noise: row.bytes(1))
      first = first ?? identity.number
      let commit = Row(
        identity: identity, link: row.withBytes(7, ChangeLink.init) ?? .origin, time: row.integer(2),
        writer: row.integer(3), author: row.optionalText(4),
        action: row.optionalText(5))
      rows.append(
        try make(commit) {
          guard let changes = ChangeSet(packed: row.bytes(6)) else {
            throw StorageError.damaged(part: "change log", reason: "commit \(identity.number) does not parse")
          }
          return changes
        })
    }
    return (first, rows)
  }

  /// Removes the keys of an erased collection from the log; nil for all collections.
  ///
  /// The ID stays, and the digest.
  func forget(_ collection: Int64?) throws {
    var rows: [(number: CommitNumber, keys: [UInt8])] = []
    // SQLite skips nearly all rows that don't mention the collection, and a check of the bytes the others.
    try connection.statement(
      "SELECT sequence, keys FROM changes WHERE ?1 IS NULL OR instr(keys, ?1)", collection.map(ChangeSet.packed(id:))
    ).query { row in
      guard row.withBytes(1, { PackedChanges.lists(collection, packed: $0) }),
        let changes = ChangeSet(packed: row.bytes(1))?.forgetting(collection)
      else { return }
      rows.append((row.integer(0), changes.packed))
    }
    for row in rows {
      try connection.statement("UPDATE changes SET keys = ?2 WHERE sequence = ?1", row.number, row.keys).run()
    }
  }
}

// MARK: - The chain

extension ChangeLog {
  /// Checks that each row follows the previous one, and is unchanged.
  package func checkChain() throws -> ChangeLogCheck {
    var check = ChangeLogCheck()
    let start = try Metadata(connection: connection).logStart() ?? .none
    var previous = start
    let statement = try connection.statement(
      "SELECT sequence, noise, time, writer, author, total, digest, action, link, keys FROM changes ORDER BY sequence")
    try statement.query { row in
      let change = ChangeChain.Row(
        number: row.integer(0), noise: row.bytes(1), time: row.integer(2), writer: row.integer(3),
        author: row.optionalText(4), action: row.optionalText(7), total: row.integer(5))
      let link = row.withBytes(8, ChangeLink.init)
      try check.add(
        change, row.bytes(9), link.map { ChangeChain.Seal(digests: row.bytes(6), link: $0) }, after: previous,
        by: chain)
      previous = End(number: change.number, total: change.total, link: link ?? .origin)
    }
    check.finish(start)
    return check
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
}

/// Distinguishes a commit from a failed one whose number another one took.
package struct CommitIdentity: Equatable, Sendable {
  let number: CommitNumber
  let noise: [UInt8]
}
