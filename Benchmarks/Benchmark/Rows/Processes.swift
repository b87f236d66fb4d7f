/// The total throughput of several processes that use one store.
enum Processes {
  private static let keyCount = 1000
  private static let milliseconds = 400
  private static let lastRound = 3
  private static let reads = Work.Chart(
    name: "read-by-processes", title: "Hot reads of all processes together", axis: "processes",
    unit: .operationsPerSecond)
  private static let commits = Work.Chart(
    name: "commit-by-processes", title: "Commits, NORMAL, of all processes together", axis: "processes",
    unit: .operationsPerSecond)

  /// The key that only this process writes.
  static func key(_ process: Int) -> String { "setting.of.process.\(process)" }

  static func row(_ folder: Folder) throws -> Row {
    let kinds = [StoreKind.coffer, .plain]
    let stores = try FilledStores(below: folder.subfolder("processes"), keyCount: keyCount, kinds: kinds)
    var row = Row()
    for processCount in [1, 2, 4, 8] {
      for kind in kinds {
        row.measurements += [
          Measurement(Work(row: "processes", at: processCount, of: reads), kind.rawValue, lastRound: lastRound) { _ in
            try run(.reads, stores, kind, processCount).reduce(0) { $0 + $1.perSecond }
          },
          Measurement(Work(row: "processes", at: processCount, of: commits), kind.rawValue, lastRound: lastRound) {
            _ in
            let counts = try run(.commits, stores, kind, processCount)
            let store = try kind.open(stores)
            for (process, result) in counts.enumerated() {
              let text = try store.text(key(process))
              try require(
                text == Samples.text(process, version: result.count), "the last commit of a process is not visible")
            }
            try store.close()
            return counts.reduce(0) { $0 + $1.perSecond }
          },
        ]
      }
    }
    return row
  }

  private static func run(
    _ use: UseStore.Use, _ stores: FilledStores, _ kind: StoreKind, _ processCount: Int
  ) throws -> [(count: Int, perSecond: Double)] {
    let children = try (0..<processCount).map { process in
      try ChildProcess.start([
        "use-store", stores.folder.path, "\(keyCount)", kind.rawValue, use.rawValue, "\(process)", "\(milliseconds)",
      ])
    }
    for child in children { try child.waitForLine() }
    for child in children { try child.endInput() }
    return try children.map { child in
      let words = try child.finish().split(separator: " ")
      guard words.count == 2, let count = Int(words[0]), let seconds = Double(words[1]), count > 0 else {
        throw Failure(reason: "a process did not get to do anything")
      }
      return (count, Double(count) / seconds)
    }
  }
}
