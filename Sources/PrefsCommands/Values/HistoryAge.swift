import ArgumentParser

/// How long earlier values are kept: `12h`, `30d`, `1y`, or `forever`.
struct HistoryAge: ExpressibleByArgument {
  /// nil for no limit.
  let duration: Duration?

  init?(argument: String) {
    if argument == "forever" {
      duration = nil
      return
    }
    guard let seconds = DurationText.seconds(argument) else { return nil }
    duration = .seconds(seconds)
  }
}
