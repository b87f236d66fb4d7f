import Synchronization

/// How long operations took, counted in classes that are 5 % wide.
final class Latencies: Sendable {
  struct Summary: Codable {
    let count: Int
    /// In microseconds.
    let median: Double
    let percentile99: Double
  }

  private static let classes: [Double] = (0..<400).map { index in
    (0..<index).reduce(0.05) { value, _ in value * 1.05 }
  }
  private let counts = Mutex([Int](repeating: 0, count: 400))

  func measure<Result>(_ body: () throws -> Result) rethrows -> Result {
    let clock = ContinuousClock()
    let start = clock.now
    let result = try body()
    let microseconds =
      Double((clock.now - start).components.attoseconds) / 1e12
      + Double((clock.now - start).components.seconds) * 1e6
    let place = min(Self.classes.count - 1, Self.classes.firstIndex { $0 >= microseconds } ?? Self.classes.count - 1)
    counts.withLock { $0[place] += 1 }
    return result
  }

  /// What was measured since the last call.
  func take() -> Summary {
    let counts = counts.withLock { counts in
      defer { counts = [Int](repeating: 0, count: 400) }
      return counts
    }
    let total = counts.reduce(0, +)
    func percentile(_ share: Double) -> Double {
      var rest = Double(total) * share
      for (place, count) in counts.enumerated() {
        rest -= Double(count)
        if rest <= 0, count > 0 { return Self.classes[place] }
      }
      return 0
    }
    return Summary(count: total, median: percentile(0.5), percentile99: percentile(0.99))
  }
}
