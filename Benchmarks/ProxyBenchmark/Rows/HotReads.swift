/// P1: reads by string key of what is in memory already.
enum HotReads {
  static let keyCount = 1000
  static let integers = Work(row: "P1", name: "hot read, Int", unit: .nanoseconds)
  static let texts = Work(row: "P1", name: "hot read, 100-byte String", unit: .nanoseconds)

  static func row(_ folder: Folder) throws -> Row {
    let keys = Samples.keys(keyCount)
    let values = Samples.texts(keyCount, version: 0)
    let expectedSum = sum(of: keyCount)
    var measurements: [Measurement] = []
    for peer in try peers(folder, keys, values) {
      measurements += [
        Measurement(integers, peer.name) { _ in try time(keys, expectedSum, peer.sum(ofIntegersFor:)) },
        Measurement(texts, peer.name) { _ in try time(keys, 100 * keyCount, peer.sum(ofLengthsFor:)) },
      ]
    }
    let dictionary = PlainDictionary(keys: keys, integersFrom: 1, texts: values)
    measurements += [
      Measurement(integers, dictionary.name) { _ in try time(keys, expectedSum, dictionary.sum(ofIntegersFor:)) },
      Measurement(texts, dictionary.name) { _ in try time(keys, 100 * keyCount, dictionary.sum(ofLengthsFor:)) },
    ]
    return Row(
      measurements: measurements,
      goals: [
        Goal(
          "hot read, Int: Coffer beside the locked Dictionary", at: integers, "Coffer", beside: locked, .atMost(0.8)),
        Goal(
          "hot read, 100-byte String: Coffer beside the locked Dictionary", at: texts, "Coffer", beside: locked,
          .described("")),
      ])
  }

  static let locked = "locked Dictionary"

  /// The sum of the integers that `peers` sets.
  static func sum(of count: Int) -> Int { count * (count + 1) / 2 }

  /// Everyone who can be read by string key, with an integer and a text for each key, all of it read once.
  static func peers(_ folder: Folder, _ keys: [String], _ texts: [String]) throws -> [any Peer] {
    let folder = try folder.subfolder("P1")
    let coffer = try CofferPeer(in: folder)
    let grdb = try GRDBPeer(path: folder.file("GRDB.sqlite"))
    try grdb.create()
    let written: [any Peer] = [coffer, LockedDictionary(), try DefaultsPeer(), grdb]
    for peer in written {
      try peer.set(integersFor: keys, from: 1)
      try peer.set(texts, for: keys)
    }
    try coffer.flush()
    let peers = written + [GRDBPeer(grdb, reading: .inOneTransaction)]
    for peer in peers { try peer.check(texts, for: keys) }
    return peers
  }

  /// The nanoseconds of a read, where `body` reads each key and adds up what it finds.
  static func time(_ keys: [String], _ expectedSum: Int, _ body: ([String]) throws -> Int) throws -> Double {
    try Measure.nanoseconds(each: keys.count) {
      let sum = try body(keys)
      try require(sum == expectedSum, "the values add up to \(sum)")
    }
  }
}
