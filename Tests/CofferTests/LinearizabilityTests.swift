import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Operations of several processes on the same keys", .serialized) struct LinearizabilityTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  // MARK: The checker

  private func explains(
    _ operations: [(RecordedOperation.Action, RecordedOperation.Result, ClosedRange<UInt64>)], initial: [Int?] = [nil]
  ) -> Bool {
    Linearizability.explains(
      operations.map {
        RecordedOperation(object: "o", action: $0, result: $1, invoked: $2.lowerBound, responded: $2.upperBound)
      }, initial: initial)
  }

  @Test("are explained if an order of the overlapping ones gives each result")
  func explained() {
    #expect(explains([]))
    #expect(explains([(.set(0, to: 1), .done, 1...2), (.get(0), .value(1), 3...4)]))
    // The read began before the write was over: it may come first or last.
    #expect(explains([(.set(0, to: 1), .done, 1...9), (.get(0), .value(nil), 2...3)]))
    #expect(explains([(.set(0, to: 1), .done, 1...9), (.get(0), .value(1), 2...3)]))
    // Of two writes at once the reads choose the order; the first choice of the search is wrong.
    #expect(
      explains([
        (.set(0, to: 1), .done, 1...9), (.set(0, to: 2), .done, 2...9), (.get(0), .value(2), 3...4),
        (.get(0), .value(1), 5...6),
      ]))
    #expect(
      explains([
        (.compareAndSet(0, expected: nil, new: 1), .success(false), 1...9), (.increment(0), .value(1), 1...9),
        (.get(0), .value(1), 10...11),
      ]))
    #expect(
      explains(
        [
          (.exchangeAll([3, 4]), .values([1, 2]), 1...5), (.getAll, .values([1, 2]), 2...3),
          (.get(1), .value(4), 3...6),
        ],
        initial: [1, 2]))
  }

  @Test("are not if a read is stale or goes back, an update is lost, or a transaction is seen in part")
  func unexplained() {
    #expect(!explains([(.set(0, to: 1), .done, 1...2), (.get(0), .value(nil), 3...4)]))
    #expect(!explains([(.get(0), .value(1), 1...2), (.set(0, to: 1), .done, 3...4)]))
    #expect(
      !explains([
        (.set(0, to: 1), .done, 1...9), (.get(0), .value(1), 2...3), (.get(0), .value(nil), 4...5),
      ]))
    // Both saw nothing.
    #expect(!explains([(.increment(0), .value(1), 1...4), (.increment(0), .value(1), 2...5)]))
    #expect(
      !explains([
        (.compareAndSet(0, expected: nil, new: 1), .success(true), 1...4),
        (.compareAndSet(0, expected: nil, new: 2), .success(true), 2...5),
      ]))
    #expect(
      !explains(
        [(.exchangeAll([3, 4]), .values([1, 2]), 1...9), (.getAll, .values([3, 2]), 2...3)], initial: [1, 2]))
    // The two readers disagree about the order.
    #expect(
      !explains([
        (.set(0, to: 1), .done, 1...20), (.set(0, to: 2), .done, 1...20), (.get(0), .value(1), 2...3),
        (.get(0), .value(2), 4...5), (.get(0), .value(1), 6...7),
      ]))
  }

  @Test("are explained quickly, even if many overlap")
  func overlapping() {
    let writes = (0..<12).map {
      (RecordedOperation.Action.set(0, to: $0), RecordedOperation.Result.done, UInt64(1)...50)
    }
    // No order explains both; the search must try each set of writes once, not every order.
    #expect(!explains(writes + [(.get(0), .value(99), 60...61)]))
    #expect(explains(writes + [(.get(0), .value(0), 60...61)]))
  }

  // MARK: The store

  @Test("through proxies and connections are linearizable, in 3 histories (300 with COFFER_SOAK)")
  func histories() throws {
    let (rounds, count) = (Self.isSoak ? 300 : 3, 150)
    var overlapCount = 0
    for round in 0..<rounds {
      let store = try TemporaryStore()
      try store.open().close()
      let workers = try ["proxy", "connection", "proxy", "connection"].enumerated().map { index, form in
        try store.startWorker("record", form, "\(round * 4 + index + 1)", "\(count)")
      }
      for worker in workers { #expect(worker.readLine() == "ready") }
      for worker in workers { try worker.write("go") }
      let history = try workers.flatMap { worker in
        try (0..<count).map { _ in
          let line = try #require(worker.readLine())
          return try JSONDecoder().decode(RecordedOperation.self, from: Data(line.utf8))
        }
      }
      overlapCount += overlaps(history)
      for (object, operations) in Dictionary(grouping: history, by: \.object) {
        let initial = [Int?](repeating: nil, count: object == "pair" ? 2 : 1)
        #expect(Linearizability.explains(operations, initial: initial), "round \(round), object \(object)")
      }
    }
    // Histories of processes that never met would prove nothing.
    #expect(overlapCount > rounds * 10)
    print(
      "\(rounds) histories of 4 processes and \(4 * count) operations, of which \(overlapCount) overlapped the next one"
    )
  }

  private func overlaps(_ history: [RecordedOperation]) -> Int {
    let sorted = history.sorted { $0.invoked < $1.invoked }
    return zip(sorted, sorted.dropFirst()).count { $0.responded > $1.invoked }
  }
}
