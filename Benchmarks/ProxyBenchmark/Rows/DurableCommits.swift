/// P3: one set, one durable commit.
enum DurableCommits {
  private enum Synchronization: String, CaseIterable {
    case full = "FULL"
    case normal = "NORMAL"

    /// Commits in one measurement.
    var commitCount: Int { self == .full ? 300 : 3000 }
  }

  private static func work(_ synchronization: Synchronization, _ keyCount: Int) -> Work {
    Work(
      row: "P3", name: "one set, one commit, \(synchronization.rawValue), \(keyCount.grouped) keys",
      unit: .operationsPerSecond)
  }

  static func row(_ folder: Folder) throws -> Row {
    var row = Row(measurements: [], goals: [])
    for keyCount in [1000, 100_000] {
      let part = try part(folder.subfolder("P3"), keyCount)
      row = Row(measurements: row.measurements + part.measurements, goals: row.goals + part.goals)
    }
    return row
  }

  private static func part(_ folder: Folder, _ keyCount: Int) throws -> Row {
    let coffer = try CofferPeer(in: folder)
    try coffer.fill(keyCount)
    let plain = try PlainDatabase(path: folder.file("plain.sqlite"), isNew: true)
    try plain.fill(keyCount)
    let grdb = try GRDBPeer(path: folder.file("GRDB.sqlite"))
    try grdb.create()
    try grdb.fill(keyCount)
    let defaults = try DefaultsPeer(filledWith: keyCount)

    var measurements: [Measurement] = []
    var goals: [Goal] = []
    for synchronization in Synchronization.allCases {
      let work = work(synchronization, keyCount)
      let isFull = synchronization == .full
      /// - Parameter read: What is committed for a key.
      func add(
        _ contender: String, count: Int = synchronization.commitCount, prepare: @escaping () throws -> Void = {},
        commit: @escaping (_ text: String, _ key: String) throws -> Void,
        read: @escaping (_ key: String) throws -> String?
      ) {
        measurements.append(
          Measurement(work, contender) { round in
            let numbers = Samples.numbers(count, below: keyCount, seed: round)
            let keys = numbers.map(Samples.key)
            let texts = numbers.enumerated().map { index, number in
              Samples.text(number, version: (round + 1) * 10_000 + index)
            }
            try prepare()
            let start = Measure.nanoseconds()
            for (key, text) in zip(keys, texts) { try commit(text, key) }
            let time = Measure.nanoseconds() - start
            let last = try keys.last.flatMap(read)
            try require(last == texts.last, "the last commit of \(contender) is not to be seen")
            return Double(count) / Double(time) * 1e9
          })
      }
      add(coffer.name, commit: { try coffer.commit($0, for: $1, isFull ? .synced : .committed) }) {
        try coffer.committedText($0)
      }
      add(
        PlainDatabase.name, prepare: { try plain.setSynchronous(isFull: isFull) },
        commit: {
          try plain.set(CollectionOfOne($0), for: CollectionOfOne($1), changes: PlainDatabase.changes(of: [$1]))
        }, read: plain.text)
      add(
        grdb.name, prepare: { try grdb.setSynchronous(isFull: isFull) },
        commit: { try grdb.set([$0], for: [$1]) }, read: grdb.text)
      if isFull {
        // It writes all of its file each time.
        add(
          defaults.name, count: keyCount > 1000 ? 1 : 20,
          commit: {
            try defaults.set([$0], for: [$1])
            defaults.synchronize()
          }, read: defaults.text)
      }
      goals.append(
        Goal(
          "\(work.name): Coffer beside plain SQLite", at: work, coffer.name, beside: PlainDatabase.name,
          .atLeast(isFull ? 0.95 : 0.85)))
    }
    return Row(measurements: measurements, goals: goals)
  }
}
