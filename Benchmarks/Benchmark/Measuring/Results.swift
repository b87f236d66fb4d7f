/// The measurements, round by round.
struct Results {
  /// The series in display order.
  private(set) var series: [Series] = []
  private(set) var goals: [Goal] = []
  private(set) var bounds: [Bound] = []
  private var values: [Series: [Int: Double]] = [:]

  /// Adds a row to the tables.
  mutating func add(_ row: Row) {
    series += row.works.flatMap { $0.measurements.map(\.series) }
    goals += row.goals
    bounds += row.bounds
  }

  mutating func add(_ value: Double, to series: Series, round: Int) {
    values[series, default: [:]][round] = value
  }

  /// The figures of a series; nil if it was not measured.
  func summary(_ series: Series) -> Summary? {
    values[series].flatMap { Summary(Array($0.values)) }
  }

  /// The ratios of the rounds in which both were measured; nil when there are none.
  func ratio(_ series: Series, beside reference: Series) -> Summary? {
    guard let values = self.values[series], let references = self.values[reference] else { return nil }
    return Summary(values.compactMap { round, value in references[round].map { value / $0 } })
  }
}
