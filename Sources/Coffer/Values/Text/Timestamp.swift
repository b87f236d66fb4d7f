#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Dates as text: RFC 3339.
package enum Timestamp {
  /// `date` in UTC with milliseconds, such as `2026-01-31T08:30:00.250Z`.
  ///
  /// A year after 9999 or before 0, which RFC 3339 cannot write, gets a sign and as many digits as it needs, as in ISO 8601.
  /// A date that is not finite is written as its number.
  package static func text(_ date: Date) -> String {
    let total = (date.timeIntervalSince1970 * 1000).rounded()
    guard abs(total) < 9e18 else { return "\(date.timeIntervalSince1970)" }
    let milliseconds = Int64(total)
    let (days, inDay) = floorDivide(milliseconds, 86_400_000)
    let (year, month, day) = civilDate(daysSince1970: days)
    let seconds = inDay / 1000
    let yearText = (0...9999).contains(year) ? padded(year, 4) : (year < 0 ? "-" : "+") + padded(abs(year), 4)
    let dateText = "\(yearText)-\(padded(month, 2))-\(padded(day, 2))"
    let timeText = "\(padded(seconds / 3600, 2)):\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2))"
    return "\(dateText)T\(timeText).\(padded(inDay % 1000, 3))Z"
  }

  /// The same with as many digits as it takes to read the same date again, bit for bit; with milliseconds if none does.
  package static func exactText(_ date: Date) -> String {
    let text = text(date)
    let seconds = date.timeIntervalSince1970.rounded(.down)
    guard Self.date(text) != date, abs(seconds) < 9e15 else { return text }
    let whole = Self.text(Date(timeIntervalSince1970: seconds)).dropLast("000Z".count)
    // From the text, as `Date` counts from 2001.
    let fraction = date.timeIntervalSince(Date(timeIntervalSince1970: seconds))
    var unit: Int64 = 1000
    for digits in 4...9 {
      unit *= 10
      let exact = "\(whole)\(padded(min(unit - 1, Int64((fraction * Double(unit)).rounded())), digits))Z"
      if Self.date(exact) == date { return exact }
    }
    return text
  }

  /// A time in milliseconds since 1970, in the same form.
  package static func text(milliseconds: Int64) -> String { text(Date(milliseconds: milliseconds)) }

  /// The date that `text` represents, or nil.
  ///
  /// Accepts `2026-01-31T08:30:00.25Z`, an offset such as `+02:00`, a space or `t` for the `T`, or a day alone, which means
  /// its midnight in UTC.
  package static func date(_ text: String) -> Date? {
    var scanner = Scanner(text)
    var sign: Int64 = 1
    if scanner.take("-") { sign = -1 } else { _ = scanner.take("+") }
    guard let yearDigits = scanner.number(digits: 4...7), scanner.take("-"),
      let month = scanner.number(digits: 2...2), (1...12).contains(month), scanner.take("-"),
      let day = scanner.number(digits: 2...2), day >= 1
    else { return nil }
    let year = sign * yearDigits
    let days = daysSince1970(year: year, month: month, day: day)
    guard civilDate(daysSince1970: days) == (year, month, day) else { return nil }
    if scanner.isAtEnd { return Date(timeIntervalSince1970: Double(days * 86400)) }

    guard scanner.take("T") || scanner.take("t") || scanner.take(" "),
      let hour = scanner.number(digits: 2...2), hour < 24, scanner.take(":"),
      let minute = scanner.number(digits: 2...2), minute < 60, scanner.take(":"),
      // RFC 3339 allows leap seconds, which a `Date` cannot hold.
      let second = scanner.number(digits: 2...2), second < 60
    else { return nil }
    var fraction = 0.0
    if scanner.take(".") {
      guard let digits = scanner.digits(), let value = Double("0." + digits) else { return nil }
      fraction = value
    }
    guard let offset = scanner.offset(), scanner.isAtEnd else { return nil }
    return Date(timeIntervalSince1970: Double(days * 86400 + hour * 3600 + minute * 60 + second - offset) + fraction)
  }

  /// The same, or nil if a date cannot hold all digits of its seconds: some seven after the point, in our time.
  package static func exactDate(_ text: String) -> Date? {
    guard let date = date(text), fraction(of: text).elementsEqual(fraction(of: exactText(date))) else { return nil }
    return date
  }

  /// Why `exactDate(_:)` refuses what is a date.
  package static let lostDigits = "its seconds have more digits than a date holds, some seven after the point"

  /// The digits after the point, without zeros at the end.
  private static func fraction(of text: String) -> Substring.UTF8View {
    var digits = text.utf8.drop { $0 != UInt8(ascii: ".") }.dropFirst().prefix { (0x30...0x39).contains($0) }
    while digits.last == UInt8(ascii: "0") { digits.removeLast() }
    return digits
  }

  // MARK: - Calendar

  // The proleptic Gregorian calendar in whole days, with years that begin in March, so that a leap day is the last day of
  // its year, and the lengths of the months follow a linear formula.

  private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
    let marchYear = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = floorDivide(marchYear, 400)
    let monthFromMarch = (month + 9) % 12
    let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  private static func civilDate(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }

  private static func floorDivide(_ dividend: Int64, _ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

extension Timestamp {
  /// Parses a timestamp from left to right.
  private struct Scanner {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = Substring(text).utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
      guard let first = rest.first, first == UInt8(ascii: character) else { return false }
      rest.removeFirst()
      return true
    }

    mutating func digits() -> String? {
      let taken = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      guard !taken.isEmpty else { return nil }
      rest = rest[taken.endIndex...]
      return String(decoding: taken, as: UTF8.self)
    }

    mutating func number(digits count: ClosedRange<Int>) -> Int64? {
      guard let digits = digits(), count.contains(digits.utf8.count) else { return nil }
      return Int64(digits)
    }

    /// `Z`, or a sign, hours and minutes; in seconds east of Greenwich.
    mutating func offset() -> Int64? {
      if take("Z") || take("z") { return 0 }
      let sign: Int64
      if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
      guard let hours = number(digits: 2...2), hours < 24, take(":"), let minutes = number(digits: 2...2), minutes < 60
      else { return nil }
      return sign * (hours * 3600 + minutes * 60)
    }
  }
}
