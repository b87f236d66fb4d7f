import ArgumentParser

/// Opens a store and reads a value, as the first thing that a process does; prints how many microseconds it took.
struct OpenOnce: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var folder: String
  @Argument var keyCount: Int
  @Argument var byteCount: Int
  @Argument var contender: String
  /// Repetitions, for a profiler.
  @Option var times = 1

  func run() throws {
    let stores = FilledStores(existing: Folder(existing: folder), keyCount: keyCount, byteCount: byteCount)
    guard let kind = StoreKind(rawValue: contender) else { throw Failure(reason: "there is no \(contender)") }
    let open = try kind.opener(stores)
    var elapsed: UInt64 = 0
    for _ in 0..<times {
      let start = Measure.nanoseconds()
      let store = try open()
      let text = try store.text(stores.sampleKey)
      elapsed += Measure.nanoseconds() - start
      try require(text == stores.sampleText, "\(contender) has another value")
      try store.close()
    }
    ChildProcess.say("\(Double(elapsed) / 1000 / Double(times))")
  }
}
