import CofferCrypto
import CofferStorage
import Foundation
import Testing

@Suite("A store file") struct StoreTests {
  @Test("gives back after reopening what was committed") func roundTrip() throws {
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
}
