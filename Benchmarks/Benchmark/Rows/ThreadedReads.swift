/// P1t: hot reads on two threads, compared with one.
enum ThreadedReads {
  private static let single = Work(row: "P1t", name: "hot read, Int, 1 thread", unit: .nanoseconds)
  private static let double = Work(row: "P1t", name: "hot read, Int, 2 threads, each", unit: .nanoseconds)

  static func row(_ folder: Folder) throws -> Row {
    let keys = Samples.keys(HotReads.keyCount)
    let expectedSum = HotReads.sum(of: keys.count)
    let texts = Samples.texts(keys.count, version: 0)
    let peers = try HotReads.peers(folder, keys, texts)
    func goal(_ name: String, _ limit: Goal.Limit) -> Goal {
      Goal(
        "\(name), 2 threads beside 1", Series(work: double, contender: name),
        beside: Series(work: single, contender: name), limit)
    }
    return Row(
      measurements: peers.flatMap { peer in
        [
          Measurement(single, peer.name) { _ in try HotReads.time(keys, expectedSum, peer.sum(ofIntegersFor:)) },
          Measurement(double, peer.name) { _ in
            try Measure.nanoseconds(onThreads: 2, each: keys.count) {
              let sum = try peer.sum(ofIntegersFor: keys)
              try require(sum == expectedSum, "the values add up to \(sum)")
            }
          },
        ]
      },
      goals: [goal("Coffer", .atMost(1.3)), goal(HotReads.locked, .described(""))])
  }
}
