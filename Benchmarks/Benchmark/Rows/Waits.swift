import Coffer

/// The longest wait of a read or a `set` during large operations.
///
/// Beside it the longest gap in a thread that only reads the clock during the same: so long the system kept the processor from
/// a thread that waits for nothing.
enum Waits {
  private static let keyCount = 100_000
  private static let clock = "the clock alone"

  private static func work(_ name: String) -> Work {
    Work(row: "waits", name: "longest of all \(name)", unit: .microseconds, baseline: clock)
  }

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("waits")
    let keys = Samples.keys(keyCount)
    let versions = (0..<2).map { Samples.texts(keyCount, version: $0) }
    let coffer = try CofferPeer(creating: folder.file("Coffer"), flushPolicy: .manually)
    var version = 0
    func set(_ count: Int = keyCount) throws {
      version = (version + 1) % versions.count
      try coffer.set(Array(versions[version].prefix(count)), for: Array(keys.prefix(count)))
    }
    let read = { @Sendable in _ = try coffer.sum(ofLengthsFor: [keys[0]]) }
    let change = { @Sendable in try coffer.set(integersFor: ["another"], from: 0) }
    func row(
      _ name: String, of operation: @escaping @Sendable () throws -> Void,
      preparing prepare: @escaping () throws -> Void,
      _ body: @escaping () throws -> Void
    ) -> [Measurement] {
      let operations: [(String, @Sendable () throws -> Void)] = [(coffer.name, operation), (clock, {})]
      return operations.map { contender, operation in
        Measurement(work(name), contender) { _ in
          try Measure.median(of: 3) {
            try prepare()
            return try Measure.longestNanoseconds(of: operation, during: body) / 1000
          }
        }
      }
    }
    let measurements = [
      row("reads of a key while 10,000 are flushed", of: read, preparing: { try set(10_000) }, coffer.flush),
      row("reads of a key while \(keyCount.grouped) are flushed", of: read, preparing: { try set() }, coffer.flush),
      row("sets of a key while \(keyCount.grouped) are flushed", of: change, preparing: { try set() }, coffer.flush),
      row(
        "reads of a key while \(keyCount.grouped) new ones are set", of: read,
        preparing: {
          try coffer.flush()
          // Empties the cache.
          let limit = coffer.proxy.cacheByteLimit
          coffer.proxy.cacheByteLimit = 0
          coffer.proxy.cacheByteLimit = limit
        }, { try set() }),
    ]
    return Row(measurements: Array(measurements.joined()))
  }
}
