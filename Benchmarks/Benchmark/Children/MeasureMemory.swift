import ArgumentParser

/// Opens a store and reads a thousand values; prints by how many MiB the process has grown.
struct MeasureMemory: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var folder: String
  @Argument var keyCount: Int
  @Argument var contender: String

  func run() throws {
    let stores = FilledStores(existing: Folder(existing: folder), keyCount: keyCount, byteCount: 100)
    guard let kind = StoreKind(rawValue: contender) else { throw Failure(reason: "there is no \(contender)") }
    let numbers = Samples.numbers(1000, below: keyCount, seed: 1)
    let open = try kind.opener(stores)
    let before = try Measure.residentByteCount()
    let store = try open()
    for number in numbers {
      let text = try store.text(Samples.key(number))
      try require(text == Samples.text(number, version: 0), "\(contender) has another value")
    }
    let after = try Measure.residentByteCount()
    try store.close()
    ChildProcess.say("\(Double(after - before) / 1_048_576)")
  }
}
