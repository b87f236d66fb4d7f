import CSQLite
import Testing

@testable import CofferStorage

@Suite("A statement")
struct StatementTests {
  @Test("whose value exceeds SQLite's limit is not run, even among others, and can be used again")
  func failedBinding() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    defer { try? connection.close() }
    sqlite3_limit(connection.handle, SQLITE_LIMIT_LENGTH, 1000)
    let insert = try connection.statement("INSERT INTO kv VALUES (?, ?)")
    let count = try connection.statement("SELECT count(*) FROM kv")

    insert.bind("key", at: 1)
    insert.bind([UInt8](repeating: 7, count: 2000), at: 2)
    #expect(try count.first { $0.integer(0) } == 0)
    #expect(throws: StorageError.sqlite(code: SQLITE_TOOBIG, message: "string or blob too big")) { try insert.run() }
    #expect(try count.first { $0.integer(0) } == 0)

    insert.bind("key", at: 1)
    insert.bind([7], at: 2)
    try insert.run()
    #expect(try count.first { $0.integer(0) } == 1)
  }

  @Test("asks for the version of the tables once in a transaction, which sees its own, and later ones that of others")
  func tableVersion() throws {
    let store = try SmallStore()
    let (connection, other) = try (store.connect(), store.connect())
    defer {
      try? connection.close()
      try? other.close()
    }
    /// How often SQLite was asked since the last call.
    func runs() -> Int32 {
      var statement = sqlite3_next_stmt(connection.handle, nil)
      while let found = statement {
        if String(cString: sqlite3_sql(found)) == "PRAGMA user_version" {
          return sqlite3_stmt_status(found, SQLITE_STMTSTATUS_RUN, 1)
        }
        statement = sqlite3_next_stmt(connection.handle, found)
      }
      return 0
    }
    func read() throws -> [Int] {
      try connection.beginRead()
      defer { try? connection.commit() }
      return try (0..<3).map { _ in try connection.tableVersion() }
    }
    let first = try read()[0]
    _ = runs()
    #expect(try read() == [first, first, first] && runs() == 1)
    try other.beginWrite(.normal)
    try other.setTableVersion(first + 1)
    #expect(try other.tableVersion() == first + 1)
    #expect(try read() == [first, first, first] && runs() == 1)
    try other.commit()
    #expect(try read() == [first + 1, first + 1, first + 1] && runs() == 1)
    // Its own change, undone.
    try connection.beginWrite(.normal)
    try connection.setTableVersion(first + 2)
    #expect(try connection.tableVersion() == first + 2)
    try connection.rollback()
    #expect(try connection.tableVersion() == first + 1 && connection.tableVersion() == first + 1)
  }
}
