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

  /// Where it is while it has no `statement`.
  private enum Position {
    case beforeStart
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
  /// On the current row; taken from the connection during the read, for this cursor alone.
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

  // MARK: Going on

  /// Advances to the next item, if any.
  func advance() throws -> Bool {
    if let statement { return try step(statement) }
    switch position {
    case .beforeStart: return try step(begin())
    case .loaded: return takeLoaded()
    case .failed(let error): throw error
    case .atEnd: return false
    }
  }

  private func step(_ statement: Statement) throws -> Bool {
    do {
      if try statement.step() { return true }
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

  private func begin() throws -> Statement {
    let statement = try connection.takeStatement(sql)
    self.statement = statement
    statement.bind(collection, at: 1)
    statement.bind(text: range.lower, at: 2)
    // "An INTEGER or REAL value is less than any TEXT or BLOB value. … A TEXT value is less than a BLOB value":
    // https://www.sqlite.org/datatype3.html, 4.1. So a blob means no end.
    if let upper = range.upper { statement.bind(text: upper, at: 3) } else { statement.bind([UInt8](), at: 3) }
    statement.bind(time, at: 4)
    return statement
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
      if statement != nil {
        row = try read()
      } else {
        switch position {
        case .beforeStart: break
        case .loaded, .atEnd: return
        case .failed(let error): throw error
        }
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
    Row(key: key, object: try storedObject(), metadata: try metadata(), dates: try dates())
  }

  // MARK: The current item

  package var key: String {
    if let statement { return statement.row.text(0) }
    guard case .loaded(let row?) = position else { preconditionFailure("the cursor is not on an item") }
    return row.key
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
    guard let statement, columns == .objects else { return false }
    return try Items.lendText(statement.row, isSealed: isSealed, body)
  }

  private func storedObject() throws -> HeldValue? {
    if let statement {
      guard columns == .objects || columns == .rows else { return nil }
      return try Items.object(statement.row, typeColumn: 1, isSealed: isSealed)
    }
    return try loaded?.object
  }

  /// The metadata, if in `columns` and present.
  package func metadata() throws -> StoredValue? {
    if let statement {
      guard columns == .metadata || columns == .rows else { return nil }
      return try Items.metadata(statement.row, columns == .metadata ? 1 : 3, isSealed: isSealed)
    }
    return try loaded?.metadata
  }

  private func dates() throws -> ItemDates {
    if let statement { return columns == .rows ? Items.dates(statement.row, 4) : .none }
    return try loaded?.dates ?? .none
  }

  /// The row that was read in advance, if the cursor is on one.
  private var loaded: Row? {
    get throws {
      switch position {
      case .loaded(let row): row
      case .failed(let error): throw error
      case .beforeStart, .atEnd: nil
      }
    }
  }

  /// Object and metadata, with their dates.
  package func item() throws -> HeldItem {
    HeldItem(object: try object(), metadata: try metadata(), dates: try dates())
  }
}
