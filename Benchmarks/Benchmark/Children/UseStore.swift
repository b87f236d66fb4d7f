import ArgumentParser

/// One of several processes that use a store concurrently: reads or commits for a while, and prints how often.
struct UseStore: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  enum Use: String, ExpressibleByArgument {
    case reads, commits
  }

  @Argument var folder: String
  @Argument var keyCount: Int
  @Argument var contender: String
  @Argument var use: Use
  /// Its number, for the key that only it writes.
  @Argument var process: Int
  @Argument var milliseconds: Int

  func run() throws {
    let stores = FilledStores(existing: Folder(existing: folder), keyCount: keyCount, byteCount: 100)
    guard let kind = StoreKind(rawValue: contender) else { throw Failure(reason: "there is no \(contender)") }
    let store = try kind.open(stores)
    try store.setSynchronization(.normal)
    let keys = Samples.keys(keyCount)
    func readAll() throws -> Int {
      let sum = try store.sum(ofLengthsFor: keys)
      try require(sum == 100 * keys.count, "\(contender) has other values")
      return keys.count
    }
    _ = try readAll()
    ChildProcess.say("ready")
    // The end of the input means that all are.
    while !ChildProcess.isInputAtEnd(afterMilliseconds: 1000) {}
    var count = 0
    let start = Measure.nanoseconds()
    while Measure.nanoseconds() - start < UInt64(milliseconds) * 1_000_000 {
      switch use {
      case .reads: count += try readAll()
      case .commits:
        count += 1
        try store.commit(Samples.text(process, version: count), for: Processes.key(process))
      }
    }
    let seconds = Double(Measure.nanoseconds() - start) / 1e9
    try store.close()
    ChildProcess.say("\(count) \(seconds)")
  }
}
