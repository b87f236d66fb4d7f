import Coffer
import Foundation

/// P7: how soon a handler in another process is notified of a commit.
///
/// Measured from the beginning of the transaction, and from its return, which may come after the handler.
enum Latency {
  private static let median = work("transaction begins → handler in another process, median")
  private static let slow = work("transaction begins → handler in another process, 99th percentile")
  private static let afterReturn = work("commit returned → handler in another process, median")
  private static let commitCount = 200

  private static func work(_ name: String) -> Work { Work(row: "P7", name: name, unit: .microseconds) }

  static func row(_ folder: Folder) throws -> Row {
    let coffer = try CofferPeer(creating: folder.subfolder("P7").file("Coffer"))
    var (latencies, afterReturns): ([Double], [Double]) = ([], [])
    return Row(
      measurements: [
        Measurement(median, coffer.name) { _ in
          let measured = try measure(coffer)
          latencies = measured.map(\.fromBeginning).sorted()
          afterReturns = measured.map(\.fromReturn).sorted()
          return latencies[commitCount / 2]
        },
        // Of the same commits.
        Measurement(slow, coffer.name) { _ in latencies[commitCount * 99 / 100] },
        Measurement(afterReturn, coffer.name) { _ in afterReturns[commitCount / 2] },
      ],
      bounds: [Bound(series: Series(work: median, contender: coffer.name), maximum: 2000)])
  }

  /// The microseconds of each commit.
  private static func measure(_ coffer: CofferPeer) throws -> [(fromBeginning: Double, fromReturn: Double)] {
    let arrivals = Arrivals()
    let registration = try coffer.proxy.database.onCommit {
      arrivals.add($0.number, Measure.nanoseconds())
    }
    defer { registration.cancel() }
    let child = try ChildProcess.start(["commit-stamps", coffer.path, "\(commitCount)"])
    let stamps = try child.finish().split(separator: "\n").map { $0.split(separator: " ").compactMap { UInt64($0) } }
    try require(arrivals.wait(for: commitCount), "not every commit was heard of")
    return try stamps.map { stamp in
      guard stamp.count == 3, let arrival = arrivals.time(CommitNumber(stamp[0])) else {
        throw Failure(reason: "a commit was not heard of")
      }
      return ((Double(arrival) - Double(stamp[1])) / 1000, (Double(arrival) - Double(stamp[2])) / 1000)
    }
  }

  /// When commits were reported.
  private final class Arrivals: @unchecked Sendable {
    // Unchecked: the condition guards the times.
    private let condition = NSCondition()
    private var times: [CommitNumber: UInt64] = [:]

    func add(_ commit: CommitNumber, _ time: UInt64) {
      condition.withLock {
        times[commit] = time
        condition.signal()
      }
    }

    func wait(for count: Int) -> Bool {
      condition.withLock {
        let deadline = Date(timeIntervalSinceNow: 30)
        while times.count < count { guard condition.wait(until: deadline) else { return false } }
        return true
      }
    }

    func time(_ commit: CommitNumber) -> UInt64? { condition.withLock { times[commit] } }
  }
}
