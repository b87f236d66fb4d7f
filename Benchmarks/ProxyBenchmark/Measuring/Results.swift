import Foundation

/// What was measured, round by round.
struct Results {
  private var order: [Series] = []
  private var values: [Series: [Double]] = [:]
  private var goals: [Goal] = []

  /// Takes a row into the tables.
  mutating func add(_ row: Row) {
    order += row.works.flatMap { $0.measurements.map(\.series) }
    goals += row.goals
  }

  mutating func add(_ value: Double, to series: Series) {
    values[series, default: []].append(value)
  }

  // MARK: Tables

  /// The ratios beside their targets: the median of the rounds' ratios, and their quartiles.
  func goalTable() -> String {
    var lines = ["| | ratio | median (quartiles) | target | |", "| --- | --- | --- | --- | --- |"]
    for goal in goals {
      guard let series = values[goal.series], let reference = values[goal.reference] else { continue }
      let ratios = zip(series, reference).map { $0 / $1 }
      let median = Self.quantile(0.5, of: ratios)
      let (target, verdict) =
        switch goal.limit {
        case .atMost(let limit): ("≤ \(limit)", median <= limit ? "reached" : "missed")
        case .atLeast(let limit): ("≥ \(limit)", median >= limit ? "reached" : "missed")
        case .described(let words): (words, "")
        }
      lines.append("| \(goal.series.work.row) | \(goal.claim) | \(Self.summary(ratios)) | \(target) | \(verdict) |")
    }
    return lines.joined(separator: "\n")
  }

  /// All that was measured: medians, and quartiles.
  func figureTable() -> String {
    var lines = ["| | work | contender | median (quartiles) | |", "| --- | --- | --- | --- | --- |"]
    for series in order {
      guard let values = values[series] else { continue }
      let work = series.work
      lines.append(
        "| \(work.row) | \(work.name) | \(series.contender) | \(Self.summary(values)) | \(work.unit.rawValue) |")
    }
    return lines.joined(separator: "\n")
  }

  private static func summary(_ values: [Double]) -> String {
    "\(text(quantile(0.5, of: values))) (\(text(quantile(0.25, of: values)))–\(text(quantile(0.75, of: values))))"
  }

  /// Between two values, the share of the way from one to the other.
  private static func quantile(_ share: Double, of values: [Double]) -> Double {
    let sorted = values.sorted()
    let position = share * Double(sorted.count - 1)
    let index = Int(position)
    guard index + 1 < sorted.count else { return sorted[index] }
    return sorted[index] + (position - Double(index)) * (sorted[index + 1] - sorted[index])
  }

  /// Three digits that count; larger numbers whole.
  private static func text(_ value: Double) -> String {
    let format =
      switch abs(value) {
      case ..<10: "%.2f"
      case ..<100: "%.1f"
      default: "%.0f"
      }
    return String(format: format, value)
  }
}
