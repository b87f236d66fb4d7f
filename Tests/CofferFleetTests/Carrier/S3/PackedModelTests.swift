import CofferCrypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferFleet

@Suite("A carrier of packs, at random", .timeLimit(.minutes(20)))
struct PackedModelTests {
  /// What all hosts share.
  private final class Game: Sendable {
    private let random: Mutex<SplitMix64>
    /// What each head stands for.
    private let states = Mutex<[[UInt8]: [String: [UInt8]]]>([[0, 0]: [:]])

    init(_ seed: UInt64) { random = Mutex(SplitMix64(state: seed)) }

    func number(_ range: ClosedRange<Int>) -> Int { random.withLock { Int.random(in: range, using: &$0) } }

    subscript(head: [UInt8]) -> [String: [UInt8]]? { states.withLock { $0[head] } }

    /// Commits changes at random.
    func play(_ host: PackedCarrier, _ index: Int) async {
      for round in UInt8(1)...12 {
        guard let head = try? await host.bytes("head"), var state = self[head] else { continue }
        let next = [UInt8(index + 1), round]
        let names = Set((0..<number(1...6)).map { _ in "r/\(number(0...15))" })
        let changes: [CarrierChange] = names.sorted().map { name in
          number(0...3) == 0 ? .remove(name: name) : .put(name, next + .init(repeating: 1, count: number(0...90)))
        }
        for change in changes { state[change.name] = change.object?.bytes }
        // Before it can be seen.
        states.withLock { $0[next] = state }
        _ = try? await host.swapHead(from: head, to: next, changes)
      }
    }
  }

  /// Several hosts commit at once, requests and answers are lost, and everything is merged all the time.
  @Test("loses nothing, and shows every host the same", arguments: UInt64(1)...6)
  func histories(_ seed: UInt64) async throws {
    let bucket = try await S3Bucket.test()
    let game = Game(seed)
    let storages = (0..<3).map { _ in HookedStorage(bucket) }
    for storage in storages {
      storage.happens { _, _ in
        if game.number(0...24) == 0 { throw CarrierError.unreachable(carrier: "", reason: "lost") }
      }
    }
    let hosts = storages.map { PackedCarrier($0, pollInterval: .milliseconds(5), sizes: .small) }
    let judge = PackedCarrier(bucket, pollInterval: .milliseconds(5), sizes: .small)
    try await judge.swapHead(from: nil, to: [0, 0])
    await withTaskGroup(of: Void.self) { group in
      for (index, host) in hosts.enumerated() { group.addTask { await game.play(host, index) } }
    }
    let contents = try await judge.contents().objects
    let expected = try #require(contents["head"].flatMap { game[$0] })
    #expect(contents.filter { $0.key != "head" } == expected, "seed \(seed)")
    for storage in storages { storage.happens(nil) }
    for host in hosts { #expect(try await host.contents().objects == contents) }
    #expect(try await judge.refresh().root?.sequence ?? 0 > 5)
  }
}
