import Foundation

/// The median of some figures, with the lowest and the highest.
struct Summary {
  let median: Double
  let lowest: Double
  let highest: Double

  /// - Returns: nil without figures.
  init?(_ values: [Double]) {
    let sorted = values.sorted()
    guard let lowest = sorted.first, let highest = sorted.last else { return nil }
    self.lowest = lowest
    self.highest = highest
    let middle = sorted.count / 2
    median = sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }

  var text: String { "\(Self.text(median)) (\(Self.text(lowest))–\(Self.text(highest)))" }

  /// Three significant digits; larger numbers without fraction.
  static func text(_ value: Double) -> String {
    switch abs(value) {
    case ..<10: String(format: "%.2f", value)
    case ..<100: String(format: "%.1f", value)
    default: Int(value.rounded()).grouped
    }
  }
}
