import CSQLite
import CofferCrypto
import Foundation
import Testing

@testable import CofferStorage

@Suite("Pages") struct PageTests {
  private func page(_ number: Int, in bytes: [UInt8]) -> Range<Int> {
    let start = Layout.envelopeByteCount + (number - 1) * Layout.pageByteCount
    return start..<start + Layout.pageByteCount
  }

  /// Expects that reading all rows names the damaged page.
  private func expectDamage(_ store: SmallStore, page number: Int, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(
      throws: StorageError.damaged(part: "page \(number)", reason: "it does not authenticate"),
      sourceLocation: sourceLocation
    ) { try store.contents() }
  }

  @Test("do not open with a bit flipped anywhere: in the ciphertext, the nonce, the tag, the epoch, the padding")
  func flippedBits() throws {
    let store = try SmallStore(rows: 500)
    let bytes = try store.bytes()
    let page = page(3, in: bytes)
    for offset in Array(stride(from: 0, to: Layout.payloadByteCount, by: 331))
      + Array(Layout.payloadByteCount..<Layout.pageByteCount)
    {
      var damaged = bytes
      damaged[page.lowerBound + offset] ^= 1 << (offset % 8)
      try store.overwrite(damaged)
      expectDamage(store, page: 3)
    }
    try store.overwrite(bytes)
    #expect(try store.contents().count == 500)
  }

  @Test("do not open in another page's place, from another store, or as zeros")
  func moved() throws {
    let store = try SmallStore(rows: 500)
    let bytes = try store.bytes()
    let (third, fourth) = (page(3, in: bytes), page(4, in: bytes))
    var swapped = bytes
    swapped.replaceSubrange(third, with: bytes[fourth])
    swapped.replaceSubrange(fourth, with: bytes[third])
    try store.overwrite(swapped)
    expectDamage(store, page: 3)

    var foreign = bytes
    foreign.replaceSubrange(third, with: try SmallStore(rows: 500).bytes()[third])
    try store.overwrite(foreign)
    expectDamage(store, page: 3)

    var zeroed = bytes
    zeroed.replaceSubrange(third, with: [UInt8](repeating: 0, count: Layout.pageByteCount))
    try store.overwrite(zeroed)
    expectDamage(store, page: 3)
  }

  @Test("that were truncated are detected, at every page boundary and inside a page")
  func cut() throws {
    let store = try SmallStore(rows: 500)
    let bytes = try store.bytes()
    for count in stride(from: Layout.envelopeByteCount, to: bytes.count, by: 2048) {
      try store.overwrite(Array(bytes[..<count]))
      #expect(throws: StorageError.self, "\(count) bytes") { try store.contents() }
      #expect(try store.bytes().count == count)
    }
  }

  @Test("all differ when the same rows are written again")
  func nonces() throws {
    let store = try SmallStore(rows: 100)
    let before = try store.bytes()
    let connection = try store.connect()
    try connection.beginWrite(.full)
    try connection.set("key 1", "changed")
    try connection.set("key 1", "value 1")
    try connection.commit()
    try connection.close()
    let after = try store.bytes()
    #expect(before != after)
    #expect(before[..<Layout.envelopeByteCount] == after[..<Layout.envelopeByteCount])
  }
}

@Suite("The VFS refuses") struct RefusalTests {
  @Test("every file except a store and its log")
  func otherFiles() throws {
    let store = try SmallStore(rows: 10)
    let connection = try store.connect()
    let other = store.folder.file("other.db")
    #expect(throws: StorageError.self) { try connection.execute("ATTACH '\(other)' AS other; CREATE TABLE other.t(x)") }
    #expect(throws: StorageError.self) {
      // Larger than the cache, so that it would have to go somewhere.
      try connection.execute(
        "PRAGMA temp_store=FILE; CREATE TEMP TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
          + "WHERE i<20000) INSERT INTO t SELECT randomblob(500) FROM n")
    }
    #expect(throws: StorageError.self) { try connection.execute("VACUUM INTO '\(other)'") }
    let names = try FileManager.default.contentsOfDirectory(atPath: store.folder.path)
    #expect(Set(names).isSubset(of: ["test.coffer", "test.coffer-wal", "test.coffer-shm"]))
    #expect(try connection.contents().count == 10)
  }

  @Test("a rollback journal planted beside the store")
  func journal() throws {
    let store = try SmallStore(rows: 10)
    let journal = store.path + "-journal"
    _ = FileManager.default.createFile(
      atPath: journal, contents: Data([0xd9, 0xd5, 0x05, 0xf9] + [UInt8](repeating: 0, count: 5000)))
    #expect(try store.contents().count == 10)
    #expect(FileManager.default.fileExists(atPath: journal))
  }

  @Test("a connection that names no key")
  func noKey() throws {
    let store = try SmallStore(rows: 10)
    var handle: OpaquePointer?
    #expect(
      sqlite3_open_v2("file:\(store.path)", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, "coffer")
        == SQLITE_CANTOPEN)
    sqlite3_close(handle)
    #expect(
      sqlite3_open_v2("file:\(store.path)?coffer=1", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, "coffer")
        == SQLITE_CANTOPEN)
    sqlite3_close(handle)
  }

  @Test("a database copied in with SQLite's backup, and exports its own completely")
  func backup() throws {
    let store = try SmallStore(rows: 500)
    let connection = try store.connect()
    let plain = try SQLiteConnection(plainFileAt: store.folder.file("plain.db"))
    try plain.execute("CREATE TABLE kv(k, v)")
    #expect(throws: StorageError.self) { try plain.copyPages(to: connection) }
    try plain.execute("INSERT INTO kv SELECT value, randomblob(3000) FROM json_each('[1,2,3,4,5,6,7,8,9]')")
    #expect(throws: StorageError.self) { try plain.copyPages(to: connection) }
    #expect(try connection.contents().count == 500)

    let copy = try SQLiteConnection(plainFileAt: store.folder.file("copy.db"))
    try connection.copyPages(to: copy)
    #expect(try copy.contents() == connection.contents())
    let other = try SmallStore()
    let sealed = try other.connect()
    try connection.copyPages(to: sealed)
    try sealed.close()
    #expect(try other.contents() == connection.contents())
    #expect(try Store.open(at: other.path, key: other.key).verifyPages { _ in }.damaged.isEmpty)
  }

  @Test("nothing of a VACUUM, which keeps every page sealed and every row")
  func vacuum() throws {
    let store = try SmallStore(rows: 5000)
    let connection = try store.connect()
    try connection.execute("DELETE FROM kv WHERE k LIKE '%7%'; VACUUM")
    let count = try connection.contents().count
    #expect(count == 5000 - 1355)
    #expect(try store.copyAsAfterCrash().contents().count == count)
    try connection.close()
    #expect(try store.contents().count == count)
    #expect(try Store.open(at: store.path, key: store.key).verifyPages { _ in }.damaged.isEmpty)
    #expect(throws: StorageError.self) {
      try store.connect().execute("PRAGMA page_size=8192; PRAGMA journal_mode=DELETE; VACUUM")
    }
    #expect(try store.contents().count == count)
  }

  @Test("pages whose reserved bytes are in use")
  func reserve() {
    var page =
      [UInt8](repeating: 7, count: Layout.payloadByteCount) + [UInt8](repeating: 0, count: Layout.reserveByteCount)
    #expect(page.withUnsafeBytes { PageCodec.hasReserve($0.baseAddress!, number: 2) })
    for offset in Layout.payloadByteCount..<Layout.pageByteCount {
      page[offset] = 1
      #expect(!page.withUnsafeBytes { PageCodec.hasReserve($0.baseAddress!, number: 2) })
      page[offset] = 0
    }
  }
}
