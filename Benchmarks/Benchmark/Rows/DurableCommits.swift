/// P3: one set, one durable commit.
enum DurableCommits {
  private static func work(_ synchronization: Synchronization, _ keyCount: Int) -> Work {
    Work(
      row: "P3", name: "one set, one commit, \(synchronization.rawValue), \(keyCount.grouped) keys",
      unit: .operationsPerSecond, baseline: PlainDatabase.name)
  }

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("P3")
    var row = Row()
    for keyCount in [1000, 100_000] {
      let stores = try FilledStores(below: folder, keyCount: keyCount)
      let kinds = StoreKind.contenders(keyCount: keyCount).filter { $0 != .cofferByRawKey }
      let opened = try kinds.map { ($0, try $0.open(stores)) }
      for synchronization in Synchronization.allCases {
        let work = work(synchronization, keyCount)
        // `UserDefaults` has one kind.
        for (kind, store) in opened where kind != .defaults || synchronization == .full {
          let count = commitCount(kind, synchronization, keyCount)
          row.measurements.append(
            Measurement(work, kind.rawValue) { round in
              try store.setSynchronization(synchronization)
              return try commitsPerSecond(store, count: count, keyCount: keyCount, round: round)
            })
        }
        row.goals.append(
          Goal(
            "\(work.name): Coffer beside plain SQLite", at: work, StoreKind.coffer.rawValue,
            beside: PlainDatabase.name, .atLeast(synchronization == .full ? 0.95 : 0.85)))
      }
    }
    try addYoungLogs(to: &row, folder.subfolder("young"))
    return row
  }

  /// The first commits after an opening, where the log has to be made longer.
  private static func addYoungLogs(to row: inout Row, _ folder: Folder) throws {
    let keyCount = 1000
    let work = Work(
      row: "P3", name: "one set, one commit, FULL, \(keyCount.grouped) keys, in a new log", unit: .operationsPerSecond,
      baseline: PlainDatabase.name)
    let kinds = StoreKind.contenders(keyCount: keyCount).filter { ![.cofferByRawKey, .lmdb, .defaults].contains($0) }
    let stores = try FilledStores(below: folder, keyCount: keyCount, kinds: kinds)
    for kind in kinds {
      row.measurements.append(
        Measurement(work, kind.rawValue) { round in
          // Closing it has removed the log of the round before.
          let store = try kind.open(stores)
          try store.setSynchronization(.full)
          let speed = try commitsPerSecond(
            store, count: commitCount(kind, .full, keyCount), keyCount: keyCount, round: round)
          try store.close()
          return speed
        })
    }
    row.goals.append(
      Goal(
        "\(work.name): Coffer beside plain SQLite", at: work, StoreKind.coffer.rawValue, beside: PlainDatabase.name,
        .atLeast(1)))
  }

  /// Commits in one measurement.
  private static func commitCount(_ kind: StoreKind, _ synchronization: Synchronization, _ keyCount: Int) -> Int {
    switch kind {
    // It rewrites its file each time.
    case .defaults: keyCount > 1000 ? 1 : 20
    // It waits for the disk each time.
    case .lmdb: 300
    default: synchronization == .full ? 300 : 3000
    }
  }

  private static func commitsPerSecond(
    _ store: any TextStore, count: Int, keyCount: Int, round: Int
  ) throws -> Double {
    let numbers = Samples.numbers(count, below: keyCount, seed: round)
    let keys = numbers.map(Samples.key)
    // Different values from any other measurement.
    let texts = numbers.enumerated().map { Samples.text($1, version: (round + 1) * 10_000 + $0) }
    let start = Measure.nanoseconds()
    for (key, text) in zip(keys, texts) { try store.commit(text, for: key) }
    let time = Measure.nanoseconds() - start
    let last = try keys.last.flatMap(store.committedText)
    try require(last == texts.last, "the last commit is not visible")
    return Double(count) / Double(time) * 1e9
  }
}
