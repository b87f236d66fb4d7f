/// How long a read waits at most while many changes are flushed.
enum Waits {
  private static let work = Work(
    row: "waits", name: "longest of all reads of a key while \(keyCount.grouped) are flushed", unit: .microseconds)
  private static let keyCount = 10_000

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("waits")
    let keys = Samples.keys(keyCount)
    let versions = (0..<2).map { Samples.texts(keyCount, version: $0) }
    let coffer = try CofferPeer(creating: folder.file("Coffer"), flushPolicy: .manually)
    var version = 0
    return Row(measurements: [
      Measurement(work, coffer.name) { _ in
        try Measure.median(of: 5) {
          version = (version + 1) % versions.count
          try coffer.set(versions[version], for: keys)
          return try Measure.longestNanoseconds(of: { _ = try coffer.sum(ofLengthsFor: [keys[0]]) }) {
            try coffer.flush()
          } / 1000
        }
      }
    ])
  }
}
