import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Items that expire in several processes") struct ExpiryProcessTests {
  @Test("are never read past their time, are reported once in each process, and stay if set again in time")
  func processes() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    // The test's own process neither reads nor removes anything before the end.
    database.core.clock.stop(at: 0)
    let workers = try (0..<8).map { _ in try start(store) }
    var random = SystemRandomNumberGenerator()
    var time: Int64 = 1_000_000
    var lasting: Set<String> = []
    for round in 0..<40 {
      time += .random(in: 1...40, using: &random)
      let shuffled = workers.shuffled(using: &random)
      // Concurrently: the clocks differ meanwhile.
      for worker in shuffled { try worker.write("time \(time)") }
      for worker in shuffled { #expect(try worker.answer() == "ok") }
      for (number, worker) in workers.enumerated() {
        let key = "\(number)-\(Int.random(in: 0..<6, using: &random))"
        let stays = Int.random(in: 0..<6, using: &random) == 0
        if stays { lasting.insert(key) } else { lasting.remove(key) }
        let expiry = stays ? 0 : time + .random(in: 1...500, using: &random)
        try worker.write("\(round % 2 == 0 ? "set" : "write") \(key) \(expiry)")
      }
      for worker in workers { #expect(try worker.answer() == "ok") }
    }
    // What is pending is committed before all that can expires.
    for worker in workers {
      _ = try worker.answer("told 0")
    }
    for worker in workers { try worker.write("time \(time + 1000)") }
    for worker in workers { #expect(try worker.answer() == "ok") }
    database.core.clock.stop(at: time + 1000)
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(0, forKey: "last") }
    let (commits, keys) = try connection.read { (try $0.rememberedCommits(), try $0.allKeys()) }
    #expect(Set(keys) == lasting.union(["last"]))
    let expired = commits.flatMap { commit in
      commit.changedKeys().filter { commit.hasExpired(key: $0) }.map { "\(commit.number):\($0)" }
    }
    #expect(!expired.isEmpty)
    for worker in workers {
      #expect(try worker.answer("told \(commits.last?.number ?? 0)") == expired.joined(separator: " "))
    }
    #expect(try database.verify().problems.isEmpty)
  }

  /// Another process, which runs commands.
  private func start(_ store: TemporaryStore) throws -> RunningChild {
    let worker = try store.startWorker("expire")
    _ = try worker.answer()
    return worker
  }

  @Test("allow another process to commit between their removal and the transaction that caused it")
  func commitBetween() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    database.core.clock.stop(at: 0)
    try connection.readWrite { try $0.setObject(1, forKey: "short", expires: Date(milliseconds: 100_000)) }
    database.core.clock.stop(at: 100_000)
    let worker = try start(store)
    let between = AfterFirstCommit { try? worker.answer("write other 0") }
    database.add(transactionObserver: between, extent: .databaseLifetime)
    try connection.readWrite { try $0.setObject(1, forKey: "mine") }
    #expect(between.answer.withLock { $0 } == "ok")
    let keys = try connection.read { try $0.allKeys() }
    #expect(Set(keys) == ["mine", "other"])
  }
}

/// Does something between two commits of one call: that of what has expired, and the caller's.
private final class AfterFirstCommit: TransactionObserver {
  let answer = Lock<String?>(nil)
  private let action: @Sendable () -> String?

  init(_ action: @escaping @Sendable () -> String?) { self.action = action }

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
  func databaseDidCommit(_ connection: Connection) { answer.withLock { $0 = $0 ?? action() } }
}

extension RunningChild {
  fileprivate func answer(_ command: String) throws -> String {
    try write(command)
    return try answer()
  }

  fileprivate func answer() throws -> String { try #require(readLine()) }
}
