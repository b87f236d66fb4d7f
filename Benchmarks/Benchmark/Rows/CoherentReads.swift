import Coffer

/// P1 with coherence: hot reads while another process occasionally commits to the same store.
enum CoherentReads {
  private static let quiet = Work(row: "P1c", name: "hot read, Int, nobody writes", unit: .nanoseconds)
  private static let busy = Work(
    row: "P1c", name: "hot read, Int, another process commits every \(pauseMilliseconds) ms", unit: .nanoseconds)
  static let pauseMilliseconds = 5
  /// Written by the other process, beside the keys read.
  static let otherKey = "setting.of.another.process"
  private static let window: UInt64 = 200_000_000

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("P1c")
    let keys = Samples.keys(HotReads.keyCount)
    let expectedSum = HotReads.sum(of: keys.count)
    let coffer = try CofferPeer(creating: folder.file("Coffer"))
    let keyFile = CofferPeer.keyFile(of: coffer.path)
    let dictionary = LockedDictionary()
    for peer in [coffer, dictionary] as [any Peer] { try peer.set(integersFor: keys, from: 1) }
    try coffer.flush()
    return Row(
      measurements: [
        Measurement(quiet, coffer.name) { _ in try HotReads.time(keys, expectedSum, coffer.sum(ofIntegersFor:)) },
        Measurement(busy, coffer.name) { _ in
          let child = try ChildProcess.start(["commit-now-and-then", coffer.path, keyFile])
          try child.waitForLine()
          var (latest, passCount) = (0, 0)
          let start = Measure.nanoseconds()
          while Measure.nanoseconds() - start < window {
            let sum = try coffer.sum(ofIntegersFor: keys)
            try require(sum == expectedSum, "the values add up to \(sum)")
            let seen: Int = try coffer.proxy.object(forKey: otherKey, inCollection: Samples.collection) ?? 0
            try require(seen >= latest, "a read went back to an older value")
            (latest, passCount) = (seen, passCount + 1)
          }
          // The mean: one read pays for a commit.
          let time = Double(Measure.nanoseconds() - start) / Double(passCount * (keys.count + 1))
          let last = try child.finish()
          let seen: Int? = try coffer.proxy.object(forKey: otherKey, inCollection: Samples.collection)
          try require(seen.map(String.init) == last, "the last commit of the other process is not seen")
          return time
        },
        Measurement(quiet, dictionary.name) { _ in
          try HotReads.time(keys, expectedSum, dictionary.sum(ofIntegersFor:))
        },
      ],
      goals: [
        Goal(
          "hot read, Int, another process commits: Coffer beside the locked Dictionary",
          Series(work: busy, contender: coffer.name), beside: Series(work: quiet, contender: dictionary.name),
          .described("P1's 0.8, but for what the commits cost")),
        Goal(
          "the same beside Coffer while nobody writes", Series(work: busy, contender: coffer.name),
          beside: Series(work: quiet, contender: coffer.name), .described("")),
      ])
  }
}
