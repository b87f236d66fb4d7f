import Foundation

/// P4: opening a store and reading a first value; P4m: how much memory that takes.
enum Opening {
  private static func first(_ keyCount: Int) -> Work {
    Work(
      row: "P4", name: "open and first read, \(keyCount.grouped) keys, first in a process", unit: .microseconds,
      baseline: PlainDatabase.name)
  }

  private static func later(_ keyCount: Int) -> Work {
    Work(
      row: "P4", name: "open and first read, \(keyCount.grouped) keys, later", unit: .microseconds,
      baseline: PlainDatabase.name)
  }

  private static let keyCounts = [1000, 1_000_000]

  static func row(_ folder: Folder) throws -> Row {
    var row = Row()
    for keyCount in keyCounts {
      let stores = try FilledStores(below: folder, keyCount: keyCount)
      for kind in StoreKind.contenders(keyCount: keyCount) {
        // A process keeps the defaults it has read.
        if kind != .defaults {
          let open = try kind.opener(stores)
          row.measurements.append(Measurement(later(keyCount), kind.rawValue) { _ in try time(stores, open) })
        }
        row.measurements.append(
          Measurement(first(keyCount), kind.rawValue) { _ in try firstTime(stores, kind) })
      }
      for kind in [StoreKind.coffer, .cofferByRawKey] {
        let name = kind.rawValue
        row.goals += [
          Goal(
            "\(later(keyCount).name): \(name) beside \(PlainDatabase.name)", at: later(keyCount), name,
            beside: PlainDatabase.name, .atMost(1.5)),
          Goal(
            "\(first(keyCount).name): \(name) beside SQLCipher", at: first(keyCount), name,
            beside: StoreKind.sqlCipher.rawValue, .atMost(1)),
        ]
      }
    }
    for name in [StoreKind.cofferByRawKey.rawValue, PlainDatabase.name] {
      row.goals.append(
        Goal(
          "open and first read, later: \(name), 1,000,000 keys beside 1,000",
          Series(work: later(keyCounts[1]), contender: name),
          beside: Series(work: later(keyCounts[0]), contender: name), .described("the same for any number")))
    }
    return row
  }

  /// The microseconds of opening and a first read at the start of a process.
  static func firstTime(_ stores: FilledStores, _ kind: StoreKind) throws -> Double {
    try Measure.median(of: 5) {
      try ChildProcess.number(
        ["open-once", stores.folder.path, "\(stores.keyCount)", "\(stores.byteCount)", kind.rawValue])
    }
  }

  /// The microseconds of opening and a first read of a store that is not open elsewhere.
  private static func time(_ stores: FilledStores, _ open: () throws -> any TextStore) throws -> Double {
    try Measure.median(of: 21) {
      let start = Measure.nanoseconds()
      let store = try open()
      let text = try store.text(stores.sampleKey)
      let time = Measure.nanoseconds() - start
      try require(text == stores.sampleText, "another value was read")
      try store.close()
      return Double(time) / 1000
    }
  }

  // MARK: Memory

  private static let memory = Work(
    row: "P4m", name: "resident memory after open and 1,000 reads of a million keys", unit: .mebibytes,
    baseline: StoreKind.grdb.rawValue)

  static func memoryRow(_ folder: Folder) throws -> Row {
    let stores = try FilledStores(below: folder, keyCount: keyCounts[1])
    let kinds = StoreKind.contenders(keyCount: keyCounts[1]).filter { $0 != .cofferByRawKey }
    return Row(
      measurements: kinds.map { kind in
        Measurement(memory, kind.rawValue) { _ in
          try ChildProcess.number(["measure-memory", stores.folder.path, "\(stores.keyCount)", kind.rawValue])
        }
      },
      goals: [
        Goal(
          "memory after open and 1,000 reads of a million keys: Coffer beside GRDB", at: memory,
          StoreKind.coffer.rawValue, beside: StoreKind.grdb.rawValue, .atMost(2))
      ])
  }
}
