#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// What the getters of UserDefaults make of a value of another type. Pure functions: no value is an error, and none traps.

extension Value {
  /// The number, truth value or text that a `Codable` type was encoded as, `Decimal` for instance; any other value itself.
  private var scalar: Value {
    guard case .json(let text) = self, let first = text.utf8.first, first != UInt8(ascii: "{"),
      first != UInt8(ascii: "[")
    else { return self }
    return (try? JSONReader.value(text)) ?? self
  }

  /// What a `Codable` value was encoded as; any other value itself.
  package var decodedJSON: Value {
    guard case .json(let text) = self else { return self }
    return (try? JSONReader.value(text)) ?? self
  }

  /// Text, and what numbers and truth values are as text; nil for all else.
  var asString: String? {
    switch scalar {
    case .string(let text): text
    case .bool(let bool): bool ? "1" : "0"
    case .int(let number): String(number)
    case .uint64(let number): String(number)
    case .double(let number): number.shortestText
    default: nil
    }
  }

  /// Whether a number is not 0, or a text begins like "yes", "true" or such a number; false for all else.
  var asBool: Bool {
    switch scalar {
    case .bool(let bool): return bool
    case .int(let number): return number != 0
    case .uint64(let number): return number != 0
    case .double(let number): return number != 0
    case .string(let text):
      var scanner = NumberScanner(text)
      return scanner.isTrue()
    default: return false
    }
  }

  /// A number without its fraction, at the nearest end where it does not fit; the digits that a text begins with; 0 for
  /// all else.
  var asInteger: Int {
    switch scalar {
    case .bool(let bool): return bool ? 1 : 0
    case .int(let number): return Int(clamping: number)
    case .uint64(let number): return Int(clamping: number)
    case .double(let number):
      if number.isNaN { return 0 }
      return Int(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : .max)
    case .string(let text):
      var scanner = NumberScanner(text)
      return scanner.integer()
    default: return 0
    }
  }

  /// A number; the longest one that a text begins with; 0 for all else.
  var asDouble: Double {
    switch scalar {
    case .bool(let bool): return bool ? 1 : 0
    case .int(let number): return Double(number)
    case .uint64(let number): return Double(number)
    case .double(let number): return number
    case .string(let text):
      var scanner = NumberScanner(text)
      return scanner.double()
    default: return 0
    }
  }

  /// As ``asDouble``; what is too large for a float is infinite.
  var asFloat: Float {
    switch scalar {
    // Without the way over a double, which would round twice.
    case .int(let number): Float(number)
    case .uint64(let number): Float(number)
    default: Float(asDouble)
    }
  }

  /// A URL as it was set; a text as the path of a file, with `~` expanded; nil for all else.
  var asURL: URL? {
    switch self {
    case .url(let url): url
    case .string(let path): URL(filePath: path)
    default: nil
    }
  }

  /// Bytes; nil for all else.
  var asData: Data? {
    if case .data(let data) = self { data } else { nil }
  }

  /// A list with its elements as plain objects; nil for all else.
  var asArray: [any Sendable]? {
    if case .array(let elements) = self { elements.map(\.asObject) } else { nil }
  }

  /// A list of nothing but text; nil for all else.
  var asStringArray: [String]? { [String](self) }

  /// A dictionary with its values as plain objects; nil for all else.
  var asDictionary: [String: any Sendable]? {
    if case .dictionary(let members) = self { members.mapValues(\.asObject) } else { nil }
  }
}

extension Double {
  /// The shortest decimal text that reads as this number; of one that was set as a `Float`, which lies in the store as the
  /// double that it equals, as that `Float`: `"12.34"`, where the double is 12.34000015258789.
  ///
  /// Which of the two types was set is not stored. A number is taken for a double's where its own text is short, or where
  /// its bits are few, as of 2⁻⁵²: of a decimal fraction that was rounded to a `Float` they seldom are.
  fileprivate var shortestText: String {
    guard let float = Float(exactly: self), significandWidth > 11, hasMoreThan15Digits else { return description }
    return float.description
  }

  /// Whether the decimal text that is exactly this number has more digits than every double keeps.
  private var hasMoreThan15Digits: Bool {
    // A binary fraction has as many decimal places as binary ones.
    var digits = magnitude
    for _ in 0..<max(0, significandWidth - Int(exponent)) {
      if digits >= 1e15 { return true }
      digits *= 10
    }
    return digits >= 1e15
  }
}

/// Reads what a text begins with, as NSString does: white space, a sign, digits; the rest does not matter.
private struct NumberScanner {
  private var rest: Substring.UnicodeScalarView

  init(_ text: String) {
    rest = text.unicodeScalars.drop(while: \.properties.isWhitespace)
  }

  mutating func isTrue() -> Bool {
    _ = takeSign()
    rest = rest.drop { $0 == "0" }
    return switch rest.first {
    case "Y", "y", "T", "t", "1", "2", "3", "4", "5", "6", "7", "8", "9": true
    default: false
    }
  }

  mutating func integer() -> Int {
    let isNegative = takeSign() == "-"
    var number = 0
    while let digit = rest.first?.decimalDigit {
      rest.removeFirst()
      let (product, overflows) = number.multipliedReportingOverflow(by: 10)
      let (sum, overflowsToo) =
        isNegative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      if overflows || overflowsToo { return isNegative ? .min : .max }
      number = sum
    }
    return number
  }

  mutating func double() -> Double {
    var text = takeSign().map(String.init) ?? ""
    let whole = takeDigits()
    var fraction = ""
    if rest.first == "." {
      rest.removeFirst()
      fraction = takeDigits()
    }
    guard !whole.isEmpty || !fraction.isEmpty else { return 0 }
    text += "\(whole.isEmpty ? "0" : whole).\(fraction.isEmpty ? "0" : fraction)"
    if let exponent = takeExponent() { text += exponent }
    return Double(text) ?? 0
  }

  private mutating func takeSign() -> Unicode.Scalar? {
    guard let sign = rest.first, sign == "-" || sign == "+" else { return nil }
    rest.removeFirst()
    return sign
  }

  private mutating func takeDigits() -> String {
    let digits = rest.prefix { $0.decimalDigit != nil }
    rest = rest[digits.endIndex...]
    return String(digits)
  }

  /// An `e` that no digit follows is part of the rest.
  private mutating func takeExponent() -> String? {
    guard rest.first == "e" || rest.first == "E" else { return nil }
    rest.removeFirst()
    let sign = takeSign() == "-" ? "-" : ""
    let digits = takeDigits()
    return digits.isEmpty ? nil : "e\(sign)\(digits)"
  }
}

extension Unicode.Scalar {
  fileprivate var decimalDigit: Int? {
    ("0"..."9").contains(self) ? Int(value - 48) : nil
  }
}
