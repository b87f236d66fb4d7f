import Foundation

/// P5: reading all of a large table, and single rows of it (P5p); P5b: filling one in a single transaction.
///
/// Coffer's storage layer and plain SQLite go through one thin handle there, in the program StorageBenchmark; the others,
/// and Coffer as programs see it, are measured here. Each measurement has a fresh connection.
enum Tables {
  private static let plain = "plain SQLite"
  private static let layer = "Coffer, storage layer"
  private static let utf8 = "Coffer, as UTF-8"
  private static let readCount = 100_000

  static func readingRow(_ folder: Folder, _ program: String, _ count: Int) throws -> Row {
    let scan = Work(
      row: "P5", name: "full scan of \(count.grouped) rows", unit: .milliseconds, baseline: plain)
    let reads = Work(
      row: "P5p", name: "random read of one of \(count.grouped) rows", unit: .microseconds, baseline: plain)
    let stores = try FilledStores(below: folder, keyCount: count)
    let storage = try StorageProgram(program, keyFile: CofferPeer.keyFile(of: stores.path(.coffer)), count: count)
    var row = Row()
    for (name, kind) in [(plain, StoreKind.plain), (layer, .coffer)] {
      row.measurements += [
        Measurement(scan, name) { _ in
          try storage.microseconds("scan", kind, stores.path(kind), seed: 0) * Double(count) / 1000
        },
        Measurement(reads, name) { round in try storage.microseconds("read", kind, stores.path(kind), seed: round) },
      ]
    }
    let lengths = (0..<count).reduce(0) { $0 + Samples.key($1).utf8.count + 100 }
    func milliseconds<Store: TextStore>(_ store: Store, _ scan: (Store) throws -> Int) throws -> Double {
      let start = Measure.nanoseconds()
      let sum = try scan(store)
      let time = Measure.nanoseconds() - start
      try require(sum == lengths, "\(store) has other keys or values")
      try store.close()
      return Double(time) / 1e6
    }
    row.measurements.append(
      Measurement(scan, utf8) { _ in
        let path = stores.path(.coffer)
        let store = try CofferPeer(opening: path, key: .keyFile(CofferPeer.keyFile(of: path)))
        return try milliseconds(store) { try $0.scanUTF8() }
      })
    for kind in [StoreKind.coffer, .grdb, .sqlCipher, .aegis, .chaCha20, .lmdb] {
      row.measurements += [
        Measurement(scan, kind.rawValue) { _ in
          try milliseconds(try kind.open(stores)) { try $0.scan() }
        },
        Measurement(reads, kind.rawValue) { round in
          try timePerRead(kind, stores, count, round) { try $0.sum(ofLengthsAtOnceFor: $1) }
        },
      ]
    }
    row.measurements.append(
      Measurement(reads, "Coffer, proxy, each read by itself") { round in
        try timePerRead(.coffer, stores, count, round) { try $0.sum(ofLengthsFor: $1) }
      })
    row.goals = [
      Goal("full scan: the storage layer beside plain SQLite", at: scan, layer, beside: plain, .atMost(1.5)),
      Goal("full scan: enumeration beside plain SQLite", at: scan, "Coffer", beside: plain, .atMost(2)),
      Goal("full scan: enumeration as UTF-8 beside GRDB", at: scan, utf8, beside: StoreKind.grdb.rawValue, .atMost(1)),
      Goal("random read: the storage layer beside plain SQLite", at: reads, layer, beside: plain, .atMost(1.5)),
    ]
    return row
  }

  /// The time of a read, in microseconds.
  private static func timePerRead(
    _ kind: StoreKind, _ stores: FilledStores, _ count: Int, _ round: Int,
    _ body: (any TextStore, [String]) throws -> Int
  ) throws -> Double {
    let keys = Samples.numbers(readCount, below: count, seed: round).map(Samples.key)
    let store = try kind.open(stores)
    let start = Measure.nanoseconds()
    let sum = try body(store, keys)
    let time = Measure.nanoseconds() - start
    try require(sum == 100 * readCount, "\(kind.rawValue) has other values")
    try store.close()
    return Double(time) / 1000 / Double(readCount)
  }

  static func fillingRow(_ folder: Folder, _ program: String, _ count: Int) throws -> Row {
    let folder = try folder.subfolder("P5b")
    let storage = try StorageProgram(program, keyFile: folder.file("key"), count: count)
    var row = Row()
    for (order, limit) in [("in-order", 1.15), ("at-random", 1.5)] {
      let work = Work(
        row: "P5b", name: "\(count.grouped) rows in one transaction, \(order == "in-order" ? "in" : "in random") order",
        unit: .microseconds, baseline: plain)
      for (name, kind) in [(plain, StoreKind.plain), (layer, .coffer)] {
        row.measurements.append(
          Measurement(work, name, warmsUp: false) { round in
            let folder = try folder.subfolder("filled")
            defer { folder.remove() }
            return try storage.microseconds("insert-\(order)", kind, folder.file("store"), seed: round)
          })
      }
      for kind in [StoreKind.grdb, .sqlCipher, .aegis, .chaCha20, .lmdb] {
        row.measurements.append(
          Measurement(work, kind.rawValue, lastRound: 3, warmsUp: false) { round in
            try timeOfFilling(kind, folder, isInOrder: order == "in-order", count, round: round)
          })
      }
      row.goals.append(
        Goal("\(work.name): the storage layer beside plain SQLite", at: work, layer, beside: plain, .atMost(limit)))
    }
    return row
  }

  private static func timeOfFilling(
    _ kind: StoreKind, _ folder: Folder, isInOrder: Bool, _ count: Int, round: Int
  ) throws -> Double {
    let folder = try folder.subfolder("filled")
    defer { folder.remove() }
    let keys = isInOrder ? Samples.keys(count).sorted() : Samples.keys(count)
    let texts = Samples.texts(count, version: round)
    let store = try kind.create(FilledStores(existing: folder, keyCount: count, byteCount: 100))
    try store.setSynchronization(.full)
    let start = Measure.nanoseconds()
    try store.set(texts, for: keys)
    let time = Measure.nanoseconds() - start
    let sum = try store.sum(ofLengthsAtOnceFor: [keys[0], keys[count / 2], keys[count - 1]])
    try require(sum == 300, "\(kind.rawValue) has other values")
    try store.close()
    return Double(time) / 1000 / Double(count)
  }
}

/// The program that measures the layers that are not public.
private struct StorageProgram {
  private let program: Program
  private let keyFile: String
  private let count: Int

  init(_ path: String, keyFile: String, count: Int) throws {
    program = try Program(path)
    self.keyFile = keyFile
    self.count = count
  }

  /// The microseconds of one row.
  func microseconds(_ work: String, _ kind: StoreKind, _ path: String, seed: Int) throws -> Double {
    let text = try program.output(
      [work, kind == .plain ? "plain" : "coffer", path, keyFile, "\(count)", "\(seed)"])
    guard let number = Double(text) else { throw Failure(reason: "StorageBenchmark said \(text)") }
    return number
  }
}
