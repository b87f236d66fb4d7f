import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

/// Pages that authenticate and make no sense: SQLite's structure broken, or crafted by an attacker with the key.
@Suite("Salvage of a broken structure") struct SalvageStructureTests {
  private let fixture: SalvageFixture
  private let store: Store

  init() throws {
    fixture = try SalvageFixture(itemCount: 300)
    store = try Store.open(at: fixture.original.path, key: fixture.original.key, isReadOnly: true)
  }

  private func page(_ number: Int) throws -> [UInt8] {
    try PageReader(store).page(number).get()
  }

  /// Salvages a copy with other contents of a page, sealed like any other.
  private func salvage(
    _ number: Int, _ change: (inout [UInt8]) -> Void
  ) throws -> (report: SalvageReport, contents: StoreContents) {
    try fixture.salvage { data in try replace(number, in: &data, change) }
  }

  private func replace(_ number: Int, in data: inout Data, _ change: (inout [UInt8]) -> Void) throws {
    var page = try page(number)
    change(&page)
    let offset = SalvageFixture.offset(ofPage: number)
    data.replaceSubrange(
      offset..<offset + Layout.pageByteCount, with: try sealed(page, as: number, of: store))
  }

  /// Seals another page's contents, as an attacker with the key could.
  private func sealed(_ page: [UInt8], as number: Int, of store: Store) throws -> [UInt8] {
    var sealed = [UInt8](repeating: 0, count: Layout.pageByteCount)
    try page.withUnsafeBytes { page in
      try sealed.withUnsafeMutableBytes { sealed in
        try PageCodec(keys: store.keys.keys).encrypt(
          #require(page.baseAddress), at: .database(page: UInt32(number)), into: #require(sealed.baseAddress))
      }
    }
    return sealed
  }

  @Test("takes nothing from a page that is marked free")
  func freePage() throws {
    let temporary = try TemporaryStore()
    let database = try temporary.open()
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      for number in 0..<200 { try transaction.setObject("value \(number)", forKey: "key \(number)") }
    }
    try connection.readWrite { transaction in
      for number in 1..<200 { try transaction.removeObject(forKey: "key \(number)") }
    }
    try database.close()
    let store = try Store.open(at: temporary.path, key: temporary.key, isReadOnly: true)
    let trunk = Int(try PageReader(store).page(1).get().bigEndian32(at: 32))
    let free = Int(try PageReader(store).page(trunk).get().bigEndian32(at: 8))
    #expect(trunk > 0 && free > 0)
    // A leaf with items, as it may have been before it was freed.
    let leaf = try sealed(page(fixture.leaves[1]), as: free, of: store)
    var bytes = try temporary.bytes()
    let offset = SalvageFixture.offset(ofPage: free)
    bytes.replaceSubrange(offset..<offset + Layout.pageByteCount, with: leaf)
    let (report, saved) = try SalvageFixture.salvage(bytes, key: temporary.key)
    #expect(saved.items.keys.map(\.key) == ["key 0"] && report.isComplete)
    // If page 1 no longer says so, the page is treated as what it looks like.
    bytes.flipBit(ofPage: 1)
    #expect(try SalvageFixture.salvage(bytes, key: temporary.key).report.itemCount > 1)
  }

  private func set(_ value: Int, at offset: Int, in page: inout [UInt8]) {
    for index in 0..<4 { page[offset + index] = UInt8(truncatingIfNeeded: value >> (24 - 8 * index)) }
  }

  @Test("finds the pages that a wrong pointer no longer leads to", arguments: [0, 1, 2, 5, 1 << 31])
  func pointer(_ target: Int) throws {
    let root = try #require(fixture.roots["items"])
    let (report, saved) = try salvage(root) { page in set(target == 5 ? root : target, at: 8, in: &page) }
    #expect(saved.items == fixture.contents.items)
    #expect(report.itemCount == fixture.contents.items.count)
  }

  @Test("ends if overflow pages form a cycle, and loses only that item")
  func circle() throws {
    // One followed by another one.
    let overflow = try #require(try fixture.overflows.first { try page($0).bigEndian32(at: 0) > 0 })
    let (report, saved) = try salvage(overflow) { set(overflow, at: 0, in: &$0) }
    let lost = try #require(fixture.names[overflow])
    #expect(saved.items == fixture.contents.without(lost).items)
    #expect(report.lostItems.map(\.key) == lost.map(\.key))
  }

  @Test("lists a value that does not decode")
  func undecodable() throws {
    // The UTF-8 of a string that only this item has, made invalid in place.
    let name = StoreContents.Name(collection: "accounts", key: "key 5 kkkkk")
    let leaf = try #require(fixture.leaves.first { fixture.names[$0]?.contains(name) ?? false })
    let (report, saved) = try salvage(leaf) { page in
      let text = Array("value 5 ".utf8)
      for offset in 0..<page.count - text.count where Array(page[offset..<offset + text.count]) == text {
        page[offset] = 0xff
      }
    }
    #expect(saved.items == fixture.contents.without([name]).items)
    #expect(
      report.lostItems == [
        SalvageReport.LostItem(
          collection: "accounts", key: "key 5 kkkkk", part: .item, reason: "its value does not decode")
      ])
  }

  @Test("copies items of an unknown kind unchanged, and says so")
  func unknownKind() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("sealed", forKey: "k", withMetadata: "m") }
    try database.close()
    let connection = try SQLiteConnection(store: Store.open(at: store.path, key: store.key), busyTimeout: .zero)
    try connection.execute("UPDATE items SET type = 99, metadata = x'63010203', data = x'040506'")
    try connection.close()
    let path = store.folder + "/new"
    let report = try Database.salvage(at: store.path, key: store.key, to: path, newKey: store.key)
    #expect(!report.isComplete && report.lostItems.map(\.key) == ["k"] && report.itemCount == 1)
    let copy = try SQLiteConnection(store: Store.open(at: path, key: store.key), busyTimeout: .zero)
    defer { try? copy.close() }
    let row = try copy.statement("SELECT type, metadata, data FROM items").first {
      ($0.integer(0), $0.bytes(1), $0.bytes(2))
    }
    #expect(row?.0 == 99 && row?.1 == [99, 1, 2, 3] && row?.2 == [4, 5, 6])
  }

  @Test("neither crashes nor hangs, whatever is on the pages", arguments: 0..<60)
  func crafted(_ seed: UInt64) throws {
    var random = SplitMix64(state: seed)
    let (report, _) = try fixture.salvage { data in
      for _ in 0..<Int.random(in: 1...12, using: &random) {
        // Headers, cell pointers and the beginnings of cells decide most.
        let number = Bool.random(using: &random) ? 1 : Int.random(in: 1...fixture.pageCount, using: &random)
        try replace(number, in: &data) { page in
          for _ in 0..<Int.random(in: 1...40, using: &random) {
            let limit = [16, 64, 400, Layout.payloadByteCount].randomElement(using: &random) ?? 16
            // The fields that the codec itself looks at stay.
            let offset = Int.random(in: 0..<limit, using: &random)
            guard number > 1 || !(16...20).contains(offset), number > 1 || !(60..<64).contains(offset) else { continue }
            page[offset] =
              [0, 1, 0x7f, 0x80, 0xff, UInt8.random(in: 0...255, using: &random)]
              .randomElement(using: &random) ?? 0
          }
        }
      }
    }
    #expect(report.pageCount > 0)
  }
}
