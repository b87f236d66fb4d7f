/// What is measured, the same for each contender.
struct Work: Hashable, Sendable {
  enum Unit: String, Sendable {
    case nanoseconds = "ns"
    case microseconds = "µs"
    case operationsPerSecond = "ops/s"
    case mebibytes = "MiB"
  }

  /// The row of performance.md.
  let row: String
  let name: String
  let unit: Unit
}

/// One contender at one work.
struct Series: Hashable, Sendable {
  let work: Work
  let contender: String
}

/// How one contender is measured at one work, once a round.
struct Measurement {
  let series: Series
  /// Round 0 warms up, and does not count.
  let measure: (_ round: Int) throws -> Double

  init(_ work: Work, _ contender: String, measure: @escaping (_ round: Int) throws -> Double) {
    series = Series(work: work, contender: contender)
    self.measure = measure
  }
}

/// What performance.md asks for: the ratio of two series in the same run.
struct Goal {
  enum Limit {
    case atMost(Double)
    case atLeast(Double)
    /// No number; words to read beside the ratio.
    case described(String)
  }

  let claim: String
  let series: Series
  let reference: Series
  let limit: Limit

  init(_ claim: String, _ series: Series, beside reference: Series, _ limit: Limit) {
    self.claim = claim
    self.series = series
    self.reference = reference
    self.limit = limit
  }

  /// Two contenders at the same work.
  init(_ claim: String, at work: Work, _ contender: String, beside reference: String, _ limit: Limit) {
    self.init(
      claim, Series(work: work, contender: contender), beside: Series(work: work, contender: reference), limit)
  }
}

/// A row of performance.md, set up and ready to be measured.
struct Row {
  let measurements: [Measurement]
  let goals: [Goal]

  /// The works in the order of their first measurements, each with all who do it.
  var works: [(work: Work, measurements: [Measurement])] {
    var works: [(work: Work, measurements: [Measurement])] = []
    for measurement in measurements {
      if let index = works.firstIndex(where: { $0.work == measurement.series.work }) {
        works[index].measurements.append(measurement)
      } else {
        works.append((measurement.series.work, [measurement]))
      }
    }
    return works
  }
}
