/// A length of time as people type it: `90s`, `15m`, `12h`, `30d`, `1y`.
enum DurationText {
  private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400]

  /// Parses `text` to seconds; nil when it is invalid or zero.
  static func seconds(_ text: String) -> Int64? {
    guard let unit = text.last.flatMap({ units[$0] }), let count = UInt32(text.dropLast()), count > 0,
      text.first != "+"
    else { return nil }
    return Int64(count) * unit
  }

  /// A number of seconds, in the largest unit that has it whole.
  static func text(_ seconds: Int64) -> String {
    let unit = units.filter { seconds.isMultiple(of: $0.value) }.max { $0.value < $1.value }
    return unit.map { "\(seconds / $0.value)\($0.key)" } ?? "\(seconds)s"
  }
}
