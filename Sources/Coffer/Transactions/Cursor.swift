import CofferStorage

/// Which keys of a collection are meant.
///
/// ```swift
/// try transaction.allKeys(inCollection: "ui", within: .prefix("window."))
/// try transaction.allKeys(inCollection: "log", within: .from("2026-01-01", upTo: "2026-02-01"))
/// ```
public struct KeyRange: Sendable, Hashable {
  /// The first key, as bytes.
  let lower: [UInt8]
  /// The key behind the last one, as bytes; nil when there is no end.
  let upper: [UInt8]?

  /// All keys.
  public static let all = KeyRange(lower: [], upper: nil)

  /// The keys that begin so, by their UTF-8 bytes.
  public static func prefix(_ prefix: String) -> KeyRange {
    let lower = Array(prefix.utf8)
    // UTF-8 has no byte 255, so the last byte can always go up.
    var upper = lower
    guard let last = upper.popLast() else { return .all }
    upper.append(last + 1)
    return KeyRange(lower: lower, upper: upper)
  }

  /// The keys from `lower` on, it included, up to `upper`, without it, in the order of their UTF-8 bytes.
  public static func from(_ lower: String, upTo upper: String? = nil) -> KeyRange {
    KeyRange(lower: Array(lower.utf8), upper: upper.map { Array($0.utf8) })
  }
}

/// Reads the items of a collection in the order of their keys, some at a time.
///
/// Before the transaction changes anything, it reads all that is left: so the enumeration sees the rows as of its start.
final class Cursor {
  /// What is read beside the key.
  enum Columns {
    case keys, objects, metadata, rows
  }

  struct Row {
    let key: String
    let object: StoredValue?
    let metadata: StoredValue?
  }

  private let connection: SQLiteConnection
  private let collection: Int64
  private let columns: Columns
  private let upper: [UInt8]?
  /// Where the next read begins.
  private var lower: [UInt8]
  private var buffer: [Row] = []
  private var position = 0
  private var isAtEnd = false
  private var chunkCount: Int64 = 16

  init(connection: SQLiteConnection, collection: Int64, range: KeyRange, columns: Columns) {
    self.connection = connection
    self.collection = collection
    self.columns = columns
    lower = range.lower
    upper = range.upper
  }

  /// What has been read and not been taken.
  var rest: ArraySlice<Row> { buffer[position...] }

  func next() throws -> Row? {
    if position == buffer.count {
      guard !isAtEnd else { return nil }
      buffer.removeAll(keepingCapacity: true)
      position = 0
      try load(chunkCount)
      chunkCount = min(chunkCount * 2, 256)
      guard !buffer.isEmpty else { return nil }
    }
    defer { position += 1 }
    return buffer[position]
  }

  func loadRest() throws {
    if !isAtEnd { try load(-1) }
  }

  /// Reads up to `count` items behind those in the buffer; all of them when it is negative.
  private func load(_ count: Int64) throws {
    let sql: StaticString =
      switch columns {
      case .keys: "SELECT key FROM items WHERE collection=?1 AND key>=?2 AND key<?3 ORDER BY key LIMIT ?4"
      case .objects: "SELECT key,type,data FROM items WHERE collection=?1 AND key>=?2 AND key<?3 ORDER BY key LIMIT ?4"
      case .metadata: "SELECT key,metadata FROM items WHERE collection=?1 AND key>=?2 AND key<?3 ORDER BY key LIMIT ?4"
      case .rows:
        "SELECT key,type,data,metadata FROM items WHERE collection=?1 AND key>=?2 AND key<?3 ORDER BY key LIMIT ?4"
      }
    let statement = try connection.statement(sql)
    statement.bind(collection, at: 1)
    statement.bind(text: lower, at: 2)
    // "An INTEGER or REAL value is less than any TEXT or BLOB value. … A TEXT value is less than a BLOB value":
    // https://www.sqlite.org/datatype3.html, 4.1. So a blob stands for no end.
    if let upper { statement.bind(text: upper, at: 3) } else { statement.bind([UInt8](), at: 3) }
    statement.bind(count, at: 4)
    let earlierCount = buffer.count
    try statement.query { row in
      buffer.append(
        Row(
          key: row.text(0),
          object: columns == .objects || columns == .rows
            ? try Session.storedValue(row, typeColumn: 1, dataColumn: 2) : nil,
          metadata: columns == .metadata
            ? try Session.metadata(row, 1) : columns == .rows ? try Session.metadata(row, 3) : nil))
    }
    isAtEnd = count < 0 || buffer.count - earlierCount < count
    // The next key there can be: a key and a zero byte.
    if let last = buffer.last { lower = Array(last.key.utf8) + [0] }
  }
}
