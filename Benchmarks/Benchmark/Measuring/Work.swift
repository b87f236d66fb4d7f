/// A measured task, the same for each contender.
struct Work: Hashable, Sendable {
  enum Unit: String, Sendable {
    case nanoseconds = "ns"
    case microseconds = "µs"
    case milliseconds = "ms"
    case operationsPerSecond = "ops/s"
    case mebibytes = "MiB"
  }

  /// Its row.
  let row: String
  let name: String
  let unit: Unit
  /// The baseline contender.
  let baseline: String?
  /// Its position in a chart.
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

  /// A chart of growth.
  struct Chart: Hashable, Sendable {
    /// Also its file name.
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

/// The measurement of one contender at one work, once per round.
struct Measurement {
  let series: Series
  /// Later rounds are skipped: for slow contenders, and for curves.
  let lastRound: Int
  /// Whether an uncounted round comes first.
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
    /// No number; text shown beside the ratio.
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

/// A target that is not a ratio: the maximum of a median.
struct Bound {
  let series: Series
  let maximum: Double
}

/// Some works with their contenders, set up and ready to measure.
struct Row {
  var measurements: [Measurement] = []
  var goals: [Goal] = []
  var bounds: [Bound] = []
  /// Called after all measurements.
  var finish: () throws -> Void = {}

  /// The works in the order of their first measurements, each with its contenders.
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
