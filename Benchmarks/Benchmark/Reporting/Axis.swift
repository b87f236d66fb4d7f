import Foundation

/// Maps positive numbers to a logarithmic scale.
struct Axis {
  private let from: Double
  private let to: Double
  private let start: Double
  private let end: Double

  init(from: Double, to: Double, pixelsFrom start: Double, to end: Double) {
    self.from = from
    self.to = max(to, from * 1.001)
    self.start = start
    self.end = end
  }

  /// The position of a number, in pixels with one decimal.
  subscript(value: Double) -> Double {
    let share = log(value / from) / log(to / from)
    return ((start + share * (end - start)) * 10).rounded() / 10
  }

  /// Powers of ten, with 2 and 5 between them if there is room.
  func steps() -> [Double] {
    let decades = log10(to / from)
    let factors: [Double] = decades > 2.5 ? [1] : [1, 2, 5]
    let powers = Int(floor(log10(from)))...Int(ceil(log10(to)))
    let steps = powers.flatMap { power in factors.map { factor -> Double in factor * pow(10, Double(power)) } }
    return steps.filter { $0 >= from * 0.999 && $0 <= to * 1.001 }
  }

  /// The next of 1, 2, 5, 10, … that is not above a number.
  static func stepBelow(_ value: Double) -> Double {
    let power = pow(10, floor(log10(value)))
    return power * ([5, 2].first { $0 * power <= value } ?? 1)
  }

  /// The next of 1, 2, 5, 10, … that is not below a number.
  static func stepAbove(_ value: Double) -> Double {
    let power = pow(10, floor(log10(value)))
    return power * ([1, 2, 5].first { $0 * power >= value } ?? 10)
  }

  static func label(_ value: Double) -> String {
    value >= 1 ? Int(value.rounded()).grouped : String(format: "%g", value)
  }
}
