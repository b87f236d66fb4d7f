import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Writers, readers, a checkpointer and a rotator that are killed together", .serialized)
struct KilledProcessesTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test("leave what they had acknowledged, nothing partial, and no lock, 12 times (1,000 with COFFER_SOAK)")
  func killed() throws {
    let (rounds, roundsOfStore) = (Self.isSoak ? 1000 : 12, 12)
    var random = SystemRandomNumberGenerator()
    var store = try TemporaryStore()
    var acknowledgedCount = 0
    var cutRotationCount = 0
    for round in 0..<rounds {
      if round % roundsOfStore == 0 {
        store = try TemporaryStore()
        try store.open().close()
      }
      let prefixes = ["\(round).a.", "\(round).b."]
      let writers = try prefixes.map { try store.startWorker("acknowledge", $0) }
      let others = [
        try store.startWorker("checkpoint"), try store.startWorker("rotate"),
        try store.startWorker("look", prefixes[0], prefixes[1]),
      ]
      for other in others { #expect(other.readLine() == "begins") }
      // Wherever each of them is by then.
      usleep(UInt32.random(in: 0..<100_000, using: &random))
      for process in (writers + others).shuffled(using: &random) { process.kill() }
      // What was seen by half, the reader would have said.
      #expect(others[2].readLine() == nil)
      cutRotationCount += try Store.peekEnvelope(at: store.path).epochs.count > 1 ? 1 : 0
      let last = try zip(prefixes, writers).map { prefix, writer in
        var acknowledged = -1
        while let line = writer.readLine() { acknowledged = try #require(Int(line)) }
        acknowledgedCount += acknowledged + 1
        return (prefix: prefix, acknowledged: acknowledged)
      }
      try check(store, last, round)
    }
    print("killed \(rounds) times: \(acknowledgedCount) commits acknowledged, \(cutRotationCount) rotations cut off")
  }

  /// Whether all is there that was acknowledged, and of what was not, all of a commit or nothing.
  private func check(_ store: TemporaryStore, _ last: [(prefix: String, acknowledged: Int)], _ round: Int) throws {
    let database = try store.open(busyTimeout: .seconds(5))
    let connection = try database.makeConnection()
    try connection.read { transaction in
      for (prefix, acknowledged) in last {
        let committed = try transaction.object(forKey: prefix, inCollection: "last", as: Int.self) ?? -1
        // At most the one whose answer the signal overtook.
        #expect((acknowledged...acknowledged + 1).contains(committed), "round \(round)")
        let count = try transaction.allKeys(inCollection: "kept").count { $0.hasPrefix(prefix) }
        #expect(count == committed + 1, "round \(round)")
        for number in stride(from: 0, through: committed, by: 1) {
          let value: String? = try transaction.object(forKey: "\(prefix)\(number)", inCollection: "kept")
          #expect(value?.hasSuffix(" \(number)") == true, "round \(round) has no \(number) of \(committed)")
        }
      }
    }
    // No lock is left: a writer gets it.
    try connection.readWrite { try $0.setObject(round, forKey: "round") }
    let problems = try database.verify().problems
    #expect(problems.isEmpty, "round \(round): \(problems)")
    try connection.close()
    try database.close()
  }
}
