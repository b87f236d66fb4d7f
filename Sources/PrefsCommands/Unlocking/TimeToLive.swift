import ArgumentParser

/// How long something is kept: `90s`, `15m`, `2h`, `1d`.
struct TimeToLive: ExpressibleByArgument, Equatable {
  let seconds: UInt32

  private static let limit: Int64 = 365 * 24 * 3600

  init(seconds: UInt32) {
    self.seconds = seconds
  }

  init?(argument: String) {
    guard let seconds = DurationText.seconds(argument), seconds <= Self.limit else { return nil }
    self.seconds = UInt32(seconds)
  }

  var defaultValueDescription: String { seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s" }
}
