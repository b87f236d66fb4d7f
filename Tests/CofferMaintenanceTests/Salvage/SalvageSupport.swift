import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

/// All that a store holds, to be compared.
struct StoreContents: Equatable {
  struct Name: Hashable {
    let collection: String
    let key: String
  }

  var items: [Name: Item] = [:]
  var history: [Name: [HistoricItem]] = [:]
  var limits: [String: HistoryLimits] = [:]

  init(_ database: Database) throws {
    let connection = try database.makeConnection()
    try connection.read { transaction in
      for collection in try transaction.allCollections() {
        for key in try transaction.allKeys(inCollection: collection) {
          items[Name(collection: collection, key: key)] = try transaction.item(forKey: key, inCollection: collection)
        }
        for key in try transaction.allKeysWithHistory(inCollection: collection) {
          history[Name(collection: collection, key: key)] = try transaction.history(
            forKey: key, inCollection: collection)
        }
        limits[collection] = try transaction.historyLimits(forCollection: collection)
      }
    }
  }

  /// The same without some items.
  func without(_ names: Set<Name>) -> StoreContents {
    var copy = self
    for name in names { copy.items[name] = nil }
    return copy
  }
}

/// A store of a few thousand items, closed, that is damaged and salvaged again and again.
struct SalvageFixture {
  let original: TemporaryStore
  let contents: StoreContents
  let bytes: Data
  /// What each page of the table `items` holds: the items whose rows or overflow pages lie on it.
  let names: [Int: Set<StoreContents.Name>]
  /// The pages of `items` by what they are.
  let roots: [String: Int]
  let leaves: [Int]
  let interiors: [Int]
  let overflows: [Int]
  var pageCount: Int { (bytes.count - Layout.envelopeByteCount) / Layout.pageByteCount }

  init(itemCount: Int = 2400) throws {
    original = try TemporaryStore()
    let database = try original.open()
    try Self.fill(database, itemCount)
    contents = try StoreContents(database)
    try database.close()
    bytes = try original.bytes()
    let store = try Store.open(at: original.path, key: original.key, isReadOnly: true)
    let connection = try SQLiteConnection(store: store, busyTimeout: .zero)
    var roots: [String: Int] = [:]
    try connection.statement("SELECT name, rootpage FROM sqlite_schema").query { row in
      roots[row.text(0)] = Int(row.integer(1))
    }
    var collections: [Int64: String] = [:]
    try connection.statement("SELECT id, name FROM collections").query { collections[$0.integer(0)] = $0.text(1) }
    try connection.close()
    self.roots = roots
    let root = try #require(roots["items"])
    let map = try PageMap(PageReader(store), root: root, collections)
    (names, leaves, interiors, overflows) = (map.names, map.leaves, map.interiors, map.overflows)
    // The map defines what must be saved; here it is checked itself.
    #expect(Set(names.values.flatMap { $0 }) == Set(contents.items.keys))
  }

  private static func fill(_ database: Database, _ itemCount: Int) throws {
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(maximumCount: 3), forCollection: "accounts") }
    let collections = ["", "accounts", "ui", "größer/als"]
    for start in stride(from: 0, to: itemCount, by: 400) {
      try connection.readWrite { transaction in
        for number in start..<min(start + 400, itemCount) {
          let collection = collections[number % 4]
          let key = "key \(number) " + String(repeating: "k", count: number % 90)
          let value: Value =
            switch number % 25 {
            case 0: .data(Data((0..<(3000 + number * 131 % 40_000)).map { UInt8(truncatingIfNeeded: $0 &* number) }))
            case 1: .double(-0.0)
            case 2: ["a": [1, 2.5, .null], "b": .uuid(UUID())]
            default: .string(String(repeating: "value \(number) ", count: 1 + number % 20))
            }
          try transaction.setObject(
            value, forKey: key, inCollection: collection, withMetadata: number % 3 == 0 ? "meta \(number)" : nil)
        }
      }
    }
    for round in 0..<5 {
      try connection.readWrite { transaction in
        for number in stride(from: 1, to: itemCount, by: 40) {
          let key = "key \(number) " + String(repeating: "k", count: number % 90)
          try transaction.setObject("round \(round)", forKey: key, inCollection: collections[number % 4])
        }
        try transaction.removeObject(forKey: "key \(round * 4) " + String(repeating: "k", count: round * 4 % 90))
      }
    }
  }

  // MARK: Damage

  /// Salvages a damaged copy, and returns the contents of the new store.
  func salvage(_ damage: (inout Data) throws -> Void) throws -> (report: SalvageReport, contents: StoreContents) {
    var damaged = bytes
    try damage(&damaged)
    return try Self.salvage(damaged, key: original.key)
  }

  static func salvage(
    _ bytes: Data, log: Data? = nil, key: KeySource
  ) throws -> (report: SalvageReport, contents: StoreContents) {
    let copy = try TemporaryStore()
    try bytes.write(to: URL(fileURLWithPath: copy.path))
    try log?.write(to: URL(fileURLWithPath: copy.path + "-wal"))
    let newPath = copy.folder + "/new.coffer"
    let report = try Database.salvage(at: copy.path, key: key, to: newPath, newKey: copy.key)
    // Not a byte, and no file.
    #expect(try copy.bytes() == bytes)
    if let log { #expect(try copy.bytes("-wal") == log) }
    #expect(!FileManager.default.fileExists(atPath: copy.path + "-shm"))
    let database = try Database.open(at: newPath, key: copy.key)
    defer { try? database.close() }
    let verification = try database.verify()
    #expect(verification.problems.isEmpty, "\(verification.problems)")
    #expect(verification.itemCount == report.itemCount)
    return (report, try StoreContents(database))
  }

  static func offset(ofPage page: Int) -> Int { Layout.envelopeByteCount + (page - 1) * Layout.pageByteCount }

  /// What is lost with some pages.
  func names(onPages pages: some Sequence<Int>) -> Set<StoreContents.Name> {
    pages.reduce(into: []) { $0.formUnion(names[$1] ?? []) }
  }
}

extension Data {
  mutating func flipBit(ofPage page: Int, at position: Int = 2000) {
    self[SalvageFixture.offset(ofPage: page) + position] ^= 4
  }
}

/// Which page has which items, found in the intact tree.
private struct PageMap {
  var names: [Int: Set<StoreContents.Name>] = [:]
  var leaves: [Int] = []
  var interiors: [Int] = []
  var overflows: [Int] = []

  init(_ pages: PageReader, root: Int, _ collections: [Int64: String]) throws {
    var waiting = [root]
    while let number = waiting.popLast() {
      let page = try #require(BTreePage(try pages.page(number).get(), number: number))
      waiting += page.children
      if page.kind == .indexLeaf { leaves.append(number) } else if number != root { interiors.append(number) }
      for row in page.rows {
        let record = try #require(Record(payload: row.local, byteCount: row.byteCount))
        let name = StoreContents.Name(
          collection: try #require(record.columns[0].integer.flatMap { collections[$0] }),
          key: try #require(record.columns[1].text))
        names[number, default: []].insert(name)
        var next = row.overflowPage ?? 0
        while next != 0 {
          overflows.append(next)
          names[next, default: []].insert(name)
          next = Int(try pages.page(next).get().bigEndian32(at: 0))
        }
      }
    }
  }
}
