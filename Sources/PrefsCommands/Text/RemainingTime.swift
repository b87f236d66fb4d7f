#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The time until a date, in the largest suitable unit.
enum RemainingTime {
  private static let units: [(name: String, seconds: Double)] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]

  /// `5 d`, `3 h`, also for past dates.
  static func text(to date: Date, from now: Date = Date()) -> String {
    let seconds = abs(date.timeIntervalSince(now))
    let unit = units.first { seconds >= 2 * $0.seconds } ?? units[units.count - 1]
    return "\(Int((min(seconds, 1e12) / unit.seconds).rounded())) \(unit.name)"
  }

  /// The notes on an item's expiry and due date; empty if it has neither.
  static func notes(expires: Date?, due: Date?) -> String {
    let expiry = expires.map { "expires in \(text(to: $0))" }
    let isOverdue = due.map { $0 <= Date() } ?? false
    let dueDate = due.map { isOverdue ? "overdue by \(text(to: $0))" : "due in \(text(to: $0))" }
    return [expiry, dueDate].compactMap(\.self).joined(separator: ", ")
  }
}
