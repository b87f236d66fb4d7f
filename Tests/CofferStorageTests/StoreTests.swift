import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@Suite("A store file") struct StoreTests {
  @Test("returns committed values after reopening") func roundTrip() throws {
    let store = try SmallStore(rows: 1000)
    #expect(try store.contents().count == 1000)
    #expect(try store.contents().contains("key 42=value 42"))
    #expect(!FileManager.default.fileExists(atPath: store.path + "-wal"))
  }

  @Test("lets a second connection read while the first one writes") func snapshot() throws {
    let store = try SmallStore(rows: 10)
    let writer = try store.connect()
    let reader = try store.connect()
    try writer.beginWrite(.full)
    try writer.set("new", "row")
    #expect(try reader.contents().count == 10)
    try writer.commit()
    #expect(try reader.contents().count == 11)
  }

  @Test(
    "is created at its path, even one with special characters of URIs",
    arguments: ["a.coffer", "a?b.coffer", "a#b.coffer", "a%41.coffer", "?#%é"])
  func path(name: String) throws {
    let folder = try ScratchFolder()
    let key = KeySource.key(try SecretBytes.random(count: 32))
    try Store.create(at: folder.file(name), key: key) { connection, _ in
      try connection.execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")
    }
    let connection = try SQLiteConnection(store: Store.open(at: folder.file(name), key: key), busyTimeout: .zero)
    try connection.set("k", "v")
    #expect(try connection.contents() == ["k=v"])
    try connection.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [name])
  }

  @Test("begins a transaction even if the previous one could not be ended, without its changes")
  func abandoned() throws {
    let store = try SmallStore(rows: 1)
    let connection = try store.connect()
    try connection.beginWrite(.full)
    try connection.set("key 1", "abandoned")
    try connection.beginWrite(.full)
    try connection.set("key 2", "value 2")
    try connection.commit()
    try connection.beginRead()
    try connection.beginRead()
    #expect(try connection.contents() == ["key 1=value 1", "key 2=value 2"])
    try connection.close()
  }
}
