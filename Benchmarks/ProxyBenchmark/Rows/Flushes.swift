/// P2f: what the flush of a thousand changed keys costs, in all threads together.
enum Flushes {
  private static let work = Work(
    row: "P2f", name: "flush of 1,000 changed keys, all processor time", unit: .microseconds)
  private static let keyCount = 1000
  private static let runCount = 20

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("P2f")
    let keys = Samples.keys(keyCount)
    let versions = (0..<4).map { Samples.texts(keyCount, version: $0) }
    let changes = PlainDatabase.changes(of: keys)

    /// - Parameters:
    ///   - prepare: What is not the flush: handing over the values, where that is a step of its own.
    ///   - check: Whether the values have arrived.
    func measurement(
      _ contender: String, prepare: @escaping ([String]) throws -> Void = { _ in },
      flush: @escaping ([String]) throws -> Void, check: @escaping ([String]) throws -> Void
    ) -> Measurement {
      var version = 0
      return Measurement(work, contender) { _ in
        let time = try Measure.processorMicroseconds(runs: runCount) {
          version = (version + 1) % versions.count
          try prepare(versions[version])
        } _: {
          try flush(versions[version])
        }
        try check(versions[version])
        return time
      }
    }

    let coffer = try CofferPeer(in: folder, flushPolicy: .manually)
    let plain = try PlainDatabase(path: folder.file("plain.sqlite"), isNew: true)
    try plain.setSynchronous(isFull: false)
    let grdb = try GRDBPeer(path: folder.file("GRDB.sqlite"))
    try grdb.create()
    let defaults = try DefaultsPeer()
    return Row(
      measurements: [
        measurement(
          coffer.name, prepare: { try coffer.set($0, for: keys) }, flush: { _ in try coffer.flush() },
          check: { texts in
            for number in [0, keyCount / 2, keyCount - 1] {
              let text = try coffer.committedText(keys[number])
              try require(text == texts[number], "the flush did not write \(keys[number])")
            }
          }),
        measurement(
          PlainDatabase.name, flush: { try plain.set($0, for: keys, changes: changes) },
          check: { texts in
            for (key, text) in zip(keys, texts) {
              let found = try plain.text(key)
              try require(found == text, "plain SQLite has another value for \(key)")
            }
          }),
        measurement(
          grdb.name, flush: { try grdb.set($0, for: keys) }, check: { try grdb.check($0, for: keys) }),
        measurement(
          "UserDefaults, set and synchronize",
          flush: {
            try defaults.set($0, for: keys)
            defaults.synchronize()
          }, check: { try defaults.check($0, for: keys) }),
        measurement(
          "UserDefaults, synchronize alone", prepare: { try defaults.set($0, for: keys) },
          flush: { _ in defaults.synchronize() }, check: { try defaults.check($0, for: keys) }),
      ],
      goals: [
        Goal(
          "flush of 1,000 changed keys: Coffer beside plain SQLite", at: work, coffer.name,
          beside: PlainDatabase.name, .atMost(1.25))
      ])
  }
}
