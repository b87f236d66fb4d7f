import CofferStorage

/// A range of keys of a collection.
///
/// ```swift
/// try transaction.allKeys(inCollection: "ui", within: .prefix("window."))
/// try transaction.allKeys(inCollection: "log", within: .from("2026-01-01", upTo: "2026-02-01"))
/// ```
public struct KeyRange: Sendable, Hashable {
  /// The first key, as bytes.
  let lower: [UInt8]
  /// The key after the last one, as bytes; nil if there is no end.
  let upper: [UInt8]?

  /// All keys.
  public static let all = KeyRange(lower: [], upper: nil)

  /// The keys with this prefix, by their UTF-8 bytes.
  public static func prefix(_ prefix: String) -> KeyRange {
    let lower = Array(prefix.utf8)
    // UTF-8 has no byte 255, so the last byte can always be incremented.
    var upper = lower
    guard let last = upper.popLast() else { return .all }
    upper.append(last + 1)
    return KeyRange(lower: lower, upper: upper)
  }

  /// The keys after this one.
  static func behind(_ key: String) -> KeyRange { KeyRange(lower: Array(key.utf8) + [0], upper: nil) }

  /// The keys from `lower`, inclusive, up to `upper`, exclusive, in the order of their UTF-8 bytes.
  public static func from(_ lower: String, upTo upper: String? = nil) -> KeyRange {
    KeyRange(lower: Array(lower.utf8), upper: upper.map { Array($0.utf8) })
  }
}

/// Iterates over the items of a collection in key order; decodes only what is requested.
///
/// Before the transaction changes anything, `loadRest` reads the rest, so the enumeration sees the rows as of its
/// start, and SQLite never steps through changing rows.
package final class Cursor {
  /// What can be requested besides the key.
  package enum Columns {
    case keys, objects, metadata, rows
  }

  private struct Row {
    let key: String
    let object: HeldValue?
    let metadata: StoredValue?
    let dates: ItemDates
  }

  private enum Position {
    case beforeStart
    /// On a row of `statement`.
    case reading
    /// On a row read in advance, nil before the first; the others are in `rest`.
    case loaded(Row?)
    case atEnd
    /// The remaining rows could not be read, which must not look like an end.
    case failed(any Error)
  }

  private let connection: SQLiteConnection
  private let collection: Int64
  /// As in `Items.item(_:isSealed:)`.
  private let isSealed: Bool?
  private let range: KeyRange
  private let columns: Columns
  /// Items expired by then are skipped.
  private let time: Int64
  @exclusivity(unchecked) private var position = Position.beforeStart
  /// Taken from the connection during the read, for this cursor alone.
  @exclusivity(unchecked) private var statement: Statement?
  @exclusivity(unchecked) private var rest: ArraySlice<Row> = []

  init(
    connection: SQLiteConnection, collection: Int64, isSealed: Bool?, range: KeyRange, columns: Columns, at time: Int64
  ) {
    self.connection = connection
    self.collection = collection
    self.isSealed = isSealed
    self.range = range
    self.columns = columns
    self.time = time
  }

  deinit {
    end(.atEnd)
  }

  private func end(_ end: Position) {
    if let statement { connection.returnStatement(statement, sql) }
    statement = nil
    position = end
  }

  /// The statement, which is on a row.
  @inline(__always)
  private var running: Statement {
    guard let statement else { preconditionFailure("the cursor is not on a row") }
    return statement
  }

  // MARK: Going on

  /// Advances to the next item, if any.
  func advance() throws -> Bool {
    switch position {
    case .reading: return try step()
    case .beforeStart:
      try begin()
      return try step()
    case .loaded: return takeLoaded()
    case .atEnd: return false
    case .failed(let error): throw error
    }
  }

  private func step() throws -> Bool {
    do {
      if try running.step() { return true }
    } catch {
      // Another step would restart the statement.
      end(.failed(error))
      throw error
    }
    end(.atEnd)
    return false
  }

  private func takeLoaded() -> Bool {
    guard let row = rest.popFirst() else {
      position = .atEnd
      return false
    }
    position = .loaded(row)
    return true
  }

  private func begin() throws {
    let statement = try connection.takeStatement(sql)
    self.statement = statement
    position = .reading
    statement.bind(collection, at: 1)
    statement.bind(text: range.lower, at: 2)
    // "An INTEGER or REAL value is less than any TEXT or BLOB value. … A TEXT value is less than a BLOB value":
    // https://www.sqlite.org/datatype3.html, 4.1. So a blob means no end.
    if let upper = range.upper { statement.bind(text: upper, at: 3) } else { statement.bind([UInt8](), at: 3) }
    statement.bind(time, at: 4)
  }

  private var sql: StaticString {
    switch columns {
    case .keys:
      """
      SELECT key FROM items
      WHERE collection=?1 AND key>=?2 AND key<?3 AND (expires IS NULL OR expires>?4) ORDER BY key
      """
    case .objects:
      """
      SELECT key,type,data FROM items
      WHERE collection=?1 AND key>=?2 AND key<?3 AND (expires IS NULL OR expires>?4) ORDER BY key
      """
    case .metadata:
      """
      SELECT key,metadata FROM items
      WHERE collection=?1 AND key>=?2 AND key<?3 AND (expires IS NULL OR expires>?4) ORDER BY key
      """
    case .rows:
      """
      SELECT key,type,data,metadata,expires,due FROM items
      WHERE collection=?1 AND key>=?2 AND key<?3 AND (expires IS NULL OR expires>?4) ORDER BY key
      """
    }
  }

  /// Reads all remaining items; the cursor does not move.
  func loadRest() throws {
    var row: Row?
    do {
      switch position {
      case .beforeStart: break
      case .reading: row = try read()
      case .loaded, .atEnd: return
      case .failed(let error): throw error
      }
      while try advance() { rest.append(try read()) }
      position = .loaded(row)
    } catch {
      rest = []
      end(.failed(error))
      throw error
    }
  }

  private func read() throws -> Row {
    Row(key: key, object: try storedObject(), metadata: try metadata(), dates: dates())
  }

  // MARK: The current item

  package var key: String {
    switch position {
    case .reading: running.row.text(0)
    case .loaded(let row?): row.key
    case .loaded(nil), .beforeStart, .atEnd, .failed: preconditionFailure("the cursor is not on an item")
    }
  }

  /// The object, if in `columns`.
  package func object() throws -> HeldValue {
    guard let object = try storedObject() else { preconditionFailure("the cursor does not read objects") }
    return object
  }

  /// Lends the bytes of the key and of its text, as they are in the row.
  ///
  /// - Returns: False if nothing was lent: the object is not a plain text, or the row was read in advance.
  func lendText(_ body: (_ key: Span<UInt8>, _ text: Span<UInt8>) throws -> Void) throws -> Bool {
    guard case .reading = position, columns == .objects else { return false }
    return try Items.lendText(running.row, isSealed: isSealed, body)
  }

  private func storedObject() throws -> HeldValue? {
    switch position {
    case .reading where columns == .objects || columns == .rows:
      try Items.object(running.row, typeColumn: 1, isSealed: isSealed)
    case .loaded(let row): row?.object
    case .failed(let error): throw error
    default: nil
    }
  }

  /// The metadata, if in `columns` and present.
  package func metadata() throws -> StoredValue? {
    switch position {
    case .reading where columns == .metadata || columns == .rows:
      try Items.metadata(running.row, columns == .metadata ? 1 : 3, isSealed: isSealed)
    case .loaded(let row): row?.metadata
    case .failed(let error): throw error
    default: nil
    }
  }

  private func dates() -> ItemDates {
    switch position {
    case .reading where columns == .rows: Items.dates(running.row, 4)
    case .loaded(let row?): row.dates
    default: .none
    }
  }

  /// Object and metadata, with their dates.
  package func item() throws -> HeldItem {
    HeldItem(object: try object(), metadata: try metadata(), dates: dates())
  }
}
