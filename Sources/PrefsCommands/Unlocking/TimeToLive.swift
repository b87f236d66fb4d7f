import ArgumentParser

/// A time to live: `90s`, `15m`, `2h`, `1d`.
package struct TimeToLive: ExpressibleByArgument, Equatable {
  package let seconds: UInt32

  private static let limit: Int64 = 365 * 24 * 3600

  package init(seconds: UInt32) {
    self.seconds = seconds
  }

  package init?(argument: String) {
    guard let seconds = DurationText.seconds(argument), seconds <= Self.limit else { return nil }
    self.seconds = UInt32(seconds)
  }

  package var defaultValueDescription: String { seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s" }
}
