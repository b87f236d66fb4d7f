/// P1: reads of cached values by string key.
enum HotReads {
  static let keyCount = 1000
  static let integers = Work(row: "P1", name: "hot read, Int", unit: .nanoseconds, baseline: locked)
  static let texts = Work(row: "P1", name: "hot read, 100-byte String", unit: .nanoseconds, baseline: locked)

  static func row(_ folder: Folder) throws -> Row {
    let keys = Samples.keys(keyCount)
    let values = Samples.texts(keyCount, version: 0)
    let expectedSum = sum(of: keyCount)
    var measurements: [Measurement] = []
    let peers: [any Peer] = try peers(folder, keys, values)
    for peer in try peers + ownThreadPeers(folder, keys, values) {
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

  /// The thread-safe contenders, with an integer and a text for each key, all read once.
  static func peers(_ folder: Folder, _ keys: [String], _ texts: [String]) throws -> [any Peer & Sendable] {
    let folder = try folder.subfolder("P1")
    let coffer = try CofferPeer(creating: folder.file("Coffer"))
    let grdb = try GRDBPeer(path: folder.file("GRDB"), isNew: true)
    let peers: [any Peer & Sendable] = [coffer, LockedDictionary(), try DefaultsPeer(), grdb]
    for peer in peers { try fill(peer, keys, texts) }
    try coffer.flush()
    return peers + [GRDBPeer(grdb, reading: .inOneTransaction)]
  }

  /// The same for single-threaded ones.
  private static func ownThreadPeers(_ folder: Folder, _ keys: [String], _ texts: [String]) throws -> [any Peer] {
    let folder = try folder.subfolder("P1")
    let peers: [any Peer] = [
      try CipherPeer(.sqlCipher, creating: folder.file("SQLCipher")),
      try LMDBPeer(path: folder.file("LMDB"), isNew: true),
    ]
    for peer in peers { try fill(peer, keys, texts) }
    return peers
  }

  private static func fill(_ peer: some Peer, _ keys: [String], _ texts: [String]) throws {
    try peer.set(integersFor: keys, from: 1)
    try peer.set(texts, for: keys)
    try peer.check(texts, for: keys)
  }

  /// The nanoseconds of a read, where `body` reads each key and adds up the values.
  static func time(_ keys: [String], _ expectedSum: Int, _ body: ([String]) throws -> Int) throws -> Double {
    try Measure.nanoseconds(each: keys.count) {
      let sum = try body(keys)
      try require(sum == expectedSum, "the values add up to \(sum)")
    }
  }
}
