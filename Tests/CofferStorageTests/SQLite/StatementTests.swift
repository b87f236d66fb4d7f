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
}
