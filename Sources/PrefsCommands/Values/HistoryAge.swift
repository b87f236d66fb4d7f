import ArgumentParser

/// How long earlier values are kept: `12h`, `30d`, `1y`, or `forever`.
struct HistoryAge: ExpressibleByArgument {
  /// nil for ever.
  let duration: Duration?

  private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400]

  init?(argument: String) {
    if argument == "forever" {
      duration = nil
      return
    }
    guard let unit = argument.last.flatMap({ Self.units[$0] }), let count = UInt32(argument.dropLast()), count > 0,
      argument.first != "+"
    else { return nil }
    duration = .seconds(Int64(count) * unit)
  }
}
