/// P2f: the cost of flushing a thousand changed keys, in all threads together.
enum Flushes {
  private static let work = Work(
    row: "P2f", name: "flush of 1,000 changed keys, all processor time", unit: .microseconds,
    baseline: PlainDatabase.name)
  private static let keyCount = 1000

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("P2f")
    let keys = Samples.keys(keyCount)
    let versions = (0..<4).map { Samples.texts(keyCount, version: $0) }
    let changes = PlainDatabase.changes(of: keys)

    /// - Parameters:
    ///   - prepare: Work before the flush: passing the values, if that is a separate step.
    ///   - check: Whether the values have arrived.
    func measurement(
      _ contender: String, runs runCount: Int = 20, prepare: @escaping ([String]) throws -> Void = { _ in },
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

    /// One transaction.
    func transaction(_ peer: some Peer) -> Measurement {
      measurement(peer.name, flush: { try peer.set($0, for: keys) }, check: { try peer.check($0, for: keys) })
    }

    let coffer = try CofferPeer(creating: folder.file("Coffer"), flushPolicy: .manually)
    let plain = try PlainDatabase(path: folder.file("plain"), isNew: true)
    let grdb = try GRDBPeer(path: folder.file("GRDB"), isNew: true)
    let sqlCipher = try CipherPeer(.sqlCipher, creating: folder.file("SQLCipher"))
    let lmdb = try LMDBPeer(path: folder.file("LMDB"), isNew: true)
    let defaults = try DefaultsPeer()
    for store in [plain, grdb, sqlCipher, lmdb] as [any TextStore] { try store.setSynchronization(.normal) }
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
        transaction(grdb),
        transaction(sqlCipher),
        transaction(lmdb),
        measurement(
          "UserDefaults, set and synchronize", runs: 3,
          flush: {
            try defaults.set($0, for: keys)
            defaults.flush()
          }, check: { try defaults.check($0, for: keys) }),
        measurement(
          "UserDefaults, synchronize alone", runs: 3, prepare: { try defaults.set($0, for: keys) },
          flush: { _ in defaults.flush() }, check: { try defaults.check($0, for: keys) }),
      ],
      goals: [
        Goal(
          "flush of 1,000 changed keys: Coffer beside plain SQLite", at: work, coffer.name,
          beside: PlainDatabase.name, .atMost(1.25))
      ])
  }
}
