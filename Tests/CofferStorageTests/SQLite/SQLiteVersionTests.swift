import Testing

@testable import CofferStorage

@Suite("The SQLite that a program finds")
struct SQLiteVersionTests {
  @Test("is refused if it is too old, with both versions named")
  func tooOld() throws {
    #expect(throws: StorageError.unsupported(reason: "SQLite 3.39.5 is too old; Coffer needs 3.40.0 or later")) {
      try SQLiteVersion.check(3_039_005)
    }
    try SQLiteVersion.check(SQLiteVersion.oldest)
    try SQLiteVersion.check()
  }
}
