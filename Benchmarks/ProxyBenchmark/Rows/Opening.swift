import Foundation

/// P4: opening a store and reading a first value; P4m: how much memory that takes.
enum Opening {
  private static func first(_ keyCount: Int) -> Work {
    Work(
      row: "P4", name: "open and first read, \(keyCount.grouped) keys, first in a process", unit: .microseconds)
  }

  private static func later(_ keyCount: Int) -> Work {
    Work(row: "P4", name: "open and first read, \(keyCount.grouped) keys, later", unit: .microseconds)
  }

  private static let keyCounts = [1000, 1_000_000]

  static func row(_ folder: Folder) throws -> Row {
    var measurements: [Measurement] = []
    var goals: [Goal] = []
    for keyCount in keyCounts {
      let stores = try FilledStores(below: folder, keyCount: keyCount)
      for opener in Opener.contenders(keyCount: keyCount) {
        let name = opener.rawValue
        // What a process has read of its defaults it keeps.
        if opener != .defaults {
          let open = try opener.prepared(stores)
          measurements.append(Measurement(later(keyCount), name) { _ in try time(stores, open) })
        }
        measurements.append(
          Measurement(first(keyCount), name) { _ in
            try Measure.median(of: 5) {
              try ChildProcess.number(["open-once", stores.folder.path, "\(keyCount)", name])
            }
          })
      }
      for opener in [Opener.keyFile, .rawKey] {
        let (name, plain) = (opener.rawValue, PlainDatabase.name)
        goals += [
          Goal(
            "\(later(keyCount).name): \(name) beside \(plain)", at: later(keyCount), name, beside: plain, .atMost(1.5)),
          Goal(
            "\(first(keyCount).name): \(name) beside \(plain)", at: first(keyCount), name, beside: plain,
            .described("SQLCipher with a raw key: 2,200 µs beside 540 to 640 where the targets were set")),
        ]
      }
    }
    for name in [Opener.rawKey.rawValue, PlainDatabase.name] {
      goals.append(
        Goal(
          "open and first read, later: \(name), 1,000,000 keys beside 1,000",
          Series(work: later(keyCounts[1]), contender: name),
          beside: Series(work: later(keyCounts[0]), contender: name), .described("the same for any number")))
    }
    return Row(measurements: measurements, goals: goals)
  }

  /// The microseconds of an opening and a first read of a store that nobody has open.
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
    row: "P4m", name: "resident memory after open and 1,000 reads of a million keys", unit: .mebibytes)

  static func memoryRow(_ folder: Folder) throws -> Row {
    let stores = try FilledStores(below: folder, keyCount: keyCounts[1])
    let openers: [Opener] = [.keyFile, .plain, .grdb]
    return Row(
      measurements: openers.map { opener in
        Measurement(memory, opener.rawValue) { _ in
          try ChildProcess.number(["measure-memory", stores.folder.path, "\(stores.keyCount)", opener.rawValue])
        }
      },
      goals: [
        Goal(
          "memory after open and 1,000 reads of a million keys: Coffer beside GRDB", at: memory,
          Opener.keyFile.rawValue, beside: Opener.grdb.rawValue, .atMost(2))
      ])
  }
}
