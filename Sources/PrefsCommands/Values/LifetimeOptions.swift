import ArgumentParser
import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The options for a value's expiry and due date.
struct LifetimeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The value expires after this long, as in 90s, 2h or 30d.", valueName: "time"))
  var expiresIn: Lifetime?

  @Option(
    help: ArgumentHelp(
      "The value expires at this time, as in 2027-01-31 or 2027-01-31T08:30:00+01:00.", valueName: "date"))
  var expiresAt: Moment?

  @Option(
    help: ArgumentHelp(
      "The value is due for renewal then: a date, or a time from now. It stays; list --due and doctor report it.",
      valueName: "date"))
  var due: DueDate?

  mutating func validate() throws {
    if expiresIn != nil, expiresAt != nil { throw ValidationError("Use --expires-in or --expires-at, not both.") }
    if let moment = expiresAt?.date, moment <= Date() { throw ValidationError("--expires-at is in the past.") }
  }

  var expires: Date? { expiresAt?.date ?? expiresIn.map { Date(timeIntervalSinceNow: Double($0.seconds)) } }
}

/// A duration: `90s`, `15m`, `12h`, `30d`, `1y`.
package struct Lifetime: ExpressibleByArgument {
  package let seconds: Int64

  package init(seconds: Int64) { self.seconds = seconds }

  /// As it is written.
  package var text: String { DurationText.text(seconds) }

  package init?(argument: String) {
    guard let seconds = DurationText.seconds(argument) else { return nil }
    self.seconds = seconds
  }
}

/// A date, with or without a time of day.
struct Moment: ExpressibleByArgument {
  let date: Date

  init?(argument: String) {
    guard let date = Timestamp.date(argument) else { return nil }
    self.date = date
  }
}

/// A date, or a duration from now.
package struct DueDate: ExpressibleByArgument {
  package let date: Date

  package init?(argument: String) {
    guard
      let date = Moment(argument: argument)?.date
        ?? Lifetime(argument: argument).map({ Date(timeIntervalSinceNow: Double($0.seconds)) })
    else { return nil }
    self.date = date
  }
}

/// A date, or a duration before now.
struct PastDate: ExpressibleByArgument {
  let date: Date

  init?(argument: String) {
    guard
      let date = Moment(argument: argument)?.date
        ?? Lifetime(argument: argument).map({ Date(timeIntervalSinceNow: -Double($0.seconds)) })
    else { return nil }
    self.date = date
  }
}
