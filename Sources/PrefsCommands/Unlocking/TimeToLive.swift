import ArgumentParser

/// How long something is kept: `90s`, `15m`, `2h`, `1d`.
struct TimeToLive: ExpressibleByArgument, Equatable {
  let seconds: UInt32

  private static let limit: UInt64 = 365 * 24 * 3600

  init(seconds: UInt32) {
    self.seconds = seconds
  }

  init?(argument: String) {
    let units: [Character: UInt64] = ["s": 1, "m": 60, "h": 3600, "d": 24 * 3600]
    guard let unit = argument.last.flatMap({ units[$0] }), let count = UInt64(argument.dropLast()), count > 0,
      argument.first != "+"
    else { return nil }
    let (seconds, isOverflow) = count.multipliedReportingOverflow(by: unit)
    guard !isOverflow, seconds <= Self.limit else { return nil }
    self.seconds = UInt32(seconds)
  }

  var defaultValueDescription: String { seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s" }
}
