import CofferStorage

@testable import Coffer

extension Connection {
  /// Lets the transactions of this connection take place at a time, in seconds since 1970.
  func setTime(_ seconds: Int64) throws {
    try perform { $0.core.clock.stop(at: seconds * 1000) }
  }
}

extension SQLiteConnection {
  /// Everything in a table, as the lossy text of its rows.
  func text(ofAllRowsIn table: String) throws -> String {
    // The statement cache wants literals.
    let sql: StaticString =
      switch table {
      case "collections": "SELECT name FROM collections"
      case "items": "SELECT key, data, metadata FROM items"
      case "history": "SELECT key, data, metadata FROM history"
      case "changes": "SELECT keys, action FROM changes"
      default: "SELECT name, value FROM meta"
      }
    var text = ""
    try statement(sql).query { row in
      for column in 0..<row.columnCount { text += String(decoding: row.bytes(column), as: UTF8.self) }
    }
    return text
  }
}
