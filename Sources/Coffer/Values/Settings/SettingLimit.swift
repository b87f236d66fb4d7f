import CofferCrypto

/// A limit on the values of a setting, beyond their type: declared by a program, checked by tools, and shown to people.
///
/// Its words complete the sentence "the value must be …": `6 to 72`, `one of light, dark`.
package enum SettingLimit: Hashable, Sendable {
  /// A number or a date from the minimum to the maximum, inclusive; nil for no bound, but not both.
  case range(minimum: Value?, maximum: Value?)
  /// One of these values.
  case choices([Value])
  /// The number of Unicode scalars of a text, bytes of data, or elements of an array or a dictionary; a maximum of nil for
  /// no bound.
  case count(minimum: Int, maximum: Int?)
  /// Text that a regular expression matches completely: a ``TextPattern``.
  case pattern(String)
  /// A condition that only the program can check, in words: `an even number`.
  case described(String)

  /// Whether a value is within the limit; always true for a value to which the limit does not apply.
  package func allows(_ value: Value) -> Bool {
    switch self {
    case .range(let minimum, let maximum):
      return !(minimum.map { value.isLess(than: $0) } ?? false) && !(maximum.map { $0.isLess(than: value) } ?? false)
        && !value.isNaN
    case .choices(let choices): return choices.contains(value)
    case .count(let minimum, let maximum):
      guard let count = value.count else { return true }
      return count >= minimum && count <= maximum ?? .max
    case .pattern(let pattern):
      guard case .string(let text) = value else { return true }
      // An invalid pattern is refused when it is declared.
      guard let pattern = KnownPatterns.pattern(pattern) else { return true }
      return pattern.compare(text) == .matches
    case .described: return true
    }
  }

  /// The expected value, as the rest of the sentence "the value must be …".
  package var words: String {
    switch self {
    case .range(let minimum?, let maximum?): "\(minimum.limitText) to \(maximum.limitText)"
    case .range(let minimum?, nil): "\(minimum.limitText) or more"
    case .range(nil, let maximum?): "\(maximum.limitText) or less"
    case .range(nil, nil): "any number"
    case .choices(let choices): "one of \(choices.map(\.limitText).joined(separator: ", "))"
    case .count(let minimum, nil): "at least \(minimum) long"
    case .count(0, let maximum?): "at most \(maximum) long"
    case .count(let minimum, let maximum?) where minimum == maximum: "exactly \(minimum) long"
    case .count(let minimum, let maximum?): "\(minimum) to \(maximum) long"
    case .pattern(let pattern): "text matching \(pattern)"
    case .described(let words): words
    }
  }

  /// The rest of the sentence "the value must be …" for a value that violates the limit.
  ///
  /// It includes the value only if that reveals nothing: a number, a date, a text that should be one of some choices, or the
  /// length of anything else.
  ///
  /// - Parameter value: nil if it must not be shown.
  func refusal(of value: Value?) -> String {
    let found: String? =
      switch (self, value) {
      case (.count, let value?): value.count.map(String.init)
      case (.choices, let value?): value.shortText
      case (_, .int(let number)?): "\(number)"
      case (_, .bool?), (_, .uint64?), (_, .double?), (_, .date?): value?.limitText
      default: nil
      }
    if isTooLong(value) { return "\(words), and the value is too long to compare" }
    return words + (found.map { ", not \($0)" } ?? ", and the value is not")
  }

  /// Why a limit is invalid; nil if it is valid.
  var problem: String? {
    switch self {
    case .range(let minimum?, let maximum?) where maximum.isLess(than: minimum):
      "its range ends before it begins"
    case .count(let minimum, let maximum) where minimum < 0 || minimum > maximum ?? .max:
      "its length limits are invalid"
    case .choices(let choices) where choices.isEmpty: "it has no choices"
    case .pattern(let pattern) where KnownPatterns.pattern(pattern) == nil:
      TextPattern.problem(of: pattern).map { problem in
        "the pattern \(Value.string(pattern).shortText) is not supported: \(problem.description)"
      }
    default: nil
    }
  }

  /// Whether a text was too long to compare with a pattern.
  private func isTooLong(_ value: Value?) -> Bool {
    guard case .pattern(let pattern) = self, case .string(let text)? = value else { return false }
    return KnownPatterns.pattern(pattern)?.compare(text) == .tooLong
  }
}

extension Value {
  /// Whether a number, a date or a text sorts before another one; false for types without an order.
  fileprivate func isLess(than other: Value) -> Bool {
    switch (self, other) {
    case (.int(let a), .int(let b)): a < b
    case (.uint64(let a), .uint64(let b)): a < b
    case (.int, .uint64): true
    case (.uint64, .int): false
    case (.double(let a), .double(let b)): a < b
    case (.double(let a), .int(let b)): a < Double(b)
    case (.int(let a), .double(let b)): Double(a) < b
    case (.double(let a), .uint64(let b)): a < Double(b)
    case (.uint64(let a), .double(let b)): Double(a) < b
    case (.date(let a), .date(let b)): a < b
    case (.string(let a), .string(let b)): a < b
    default: false
    }
  }

  fileprivate var isNaN: Bool { if case .double(let number) = self { number.isNaN } else { false } }

  fileprivate var count: Int? {
    switch self {
    case .string(let text): text.unicodeScalars.count
    case .data(let data): data.count
    case .secret(let secret): secret.count
    case .array(let elements): elements.count
    case .dictionary(let elements): elements.count
    default: nil
    }
  }

  /// The value as shown in a sentence: text without quotes, anything else as JSON.
  fileprivate var limitText: String {
    switch self {
    case .string(let text): text
    case .double(let number): "\(number)"
    default: JSONText.text(self, bigIntegers: .numbers)
    }
  }

  private static let shortLength = 40

  /// The value as shown in a sentence, truncated; for a secret, its length.
  var shortText: String {
    let text = limitText
    guard text.unicodeScalars.count > Self.shortLength else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.shortLength))) + "…"
  }
}

// MARK: - Patterns

/// Patterns, compiled once each: one declaration serves many reads.
private enum KnownPatterns {
  private static let known = Lock<[String: TextPattern]>([:])
  /// Patterns come from programs and their stores, which have few; each may have thousands of parts.
  private static let limit = 100

  /// The pattern of a text; nil if it is not one.
  static func pattern(_ text: String) -> TextPattern? {
    if let pattern = known.withLock({ $0[text] }) { return pattern }
    guard let pattern = try? TextPattern(text) else { return nil }
    known.withLock { known in
      if known.count >= limit { known.removeAll() }
      known[text] = pattern
    }
    return pattern
  }
}
