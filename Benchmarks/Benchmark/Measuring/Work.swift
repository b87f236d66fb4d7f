/// What is measured, the same for each contender.
struct Work: Hashable, Sendable {
  enum Unit: String, Sendable {
    case nanoseconds = "ns"
    case microseconds = "µs"
    case milliseconds = "ms"
    case operationsPerSecond = "ops/s"
    case mebibytes = "MiB"
  }

  /// Which row it belongs to.
  let row: String
  let name: String
  let unit: Unit
  /// The contender that the others are compared with.
  let baseline: String?
  /// Where it stands in a chart.
  let point: Point?

  init(row: String, name: String, unit: Unit, baseline: String? = nil) {
    self.row = row
    self.name = name
    self.unit = unit
    self.baseline = baseline
    point = nil
  }

  /// One point on each contender's curve.
  init(row: String, at x: Int, of chart: Chart) {
    self.row = row
    name = chart.title
    unit = chart.unit
    baseline = nil
    point = Point(chart: chart, x: x)
  }

  struct Point: Hashable, Sendable {
    let chart: Chart
    let x: Int
  }

  /// How something grows.
  struct Chart: Hashable, Sendable {
    /// Also the name of its file.
    let name: String
    let title: String
    let axis: String
    let unit: Unit
  }
}

/// One contender at one work.
struct Series: Hashable, Sendable {
  let work: Work
  let contender: String
}

/// How one contender is measured at one work, once a round.
struct Measurement {
  let series: Series
  /// The rounds after this one are left out: for contenders that take long, and for curves.
  let lastRound: Int
  /// Whether a round that does not count comes first.
  let warmsUp: Bool
  /// Round 0 warms up.
  let measure: (_ round: Int) throws -> Double

  init(
    _ work: Work, _ contender: String, lastRound: Int = .max, warmsUp: Bool = true,
    measure: @escaping (_ round: Int) throws -> Double
  ) {
    series = Series(work: work, contender: contender)
    self.lastRound = lastRound
    self.warmsUp = warmsUp
    self.measure = measure
  }
}

/// A target: the ratio of two series in the same run.
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

/// A target that is no ratio: the most that a median may be.
struct Bound {
  let series: Series
  let maximum: Double
}

/// Some works with all who do them, set up and ready to be measured.
struct Row {
  var measurements: [Measurement] = []
  var goals: [Goal] = []
  var bounds: [Bound] = []
  /// What is to be done when all of it was measured.
  var finish: () throws -> Void = {}

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
