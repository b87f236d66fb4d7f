/// P2: `set` as seen by the caller; work of other threads finishes before the next thousand.
enum Sets {
  private static let integers = Work(row: "P2", name: "set, Int", unit: .nanoseconds, baseline: HotReads.locked)
  private static let texts = Work(
    row: "P2", name: "set, 100-byte String", unit: .nanoseconds, baseline: HotReads.locked)
  private static let keyCount = 1000

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("P2")
    let keys = Samples.keys(keyCount)
    // Taking turns, so that each set changes its value.
    let versions = (0..<4).map { Samples.texts(keyCount, version: $0) }
    let coffer = try CofferPeer(creating: folder.file("Coffer"))
    let manual = try CofferPeer(
      "Coffer, flushed by hand", creating: folder.file("manual"), flushPolicy: .manually)
    let peers: [(any Peer, finish: () throws -> Void)] = [
      (coffer, coffer.flush), (manual, manual.flush), (LockedDictionary(), {}), (try DefaultsPeer(), {}),
    ]
    var measurements: [Measurement] = []
    for (peer, finish) in peers {
      var first = 0
      var version = 0
      try peer.set(integersFor: keys, from: first)
      try peer.set(versions[version], for: keys)
      measurements += [
        Measurement(integers, peer.name) { _ in
          let time = try Measure.nanoseconds(each: keyCount) {
            try finish()
            first += 1
          } _: {
            try peer.set(integersFor: keys, from: first)
          }
          try peer.check(integersFor: keys, from: first)
          return time
        },
        Measurement(texts, peer.name) { _ in
          let time = try Measure.nanoseconds(each: keyCount) {
            try finish()
            version = (version + 1) % versions.count
          } _: {
            try peer.set(versions[version], for: keys)
          }
          try finish()
          try peer.check(versions[version], for: keys)
          return time
        },
      ]
    }
    return Row(
      measurements: measurements,
      goals: [integers, texts].flatMap { work in
        [coffer, manual].map { peer in
          Goal(
            "\(work.name): \(peer.name) beside the locked Dictionary", at: work, peer.name, beside: HotReads.locked,
            .atMost(3))
        }
      })
  }
}
