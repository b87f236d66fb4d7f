#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// How the getters of UserDefaults convert values of other types. Pure functions: no value is an error, and no conversion
// traps.

extension Value {
  /// The number, Boolean or text that a `Codable` type such as `Decimal` was encoded as; otherwise the value itself.
  private var scalar: Value {
    guard case .json(let text) = self, let first = text.utf8.first, first != UInt8(ascii: "{"),
      first != UInt8(ascii: "[")
    else { return self }
    return (try? JSONReader.value(text, roundsNumbers: true)) ?? self
  }

  /// The encoded form of a `Codable` value; otherwise the value itself.
  package var decodedJSON: Value {
    guard case .json(let text) = self else { return self }
    return (try? JSONReader.value(text, roundsNumbers: true)) ?? self
  }

  /// Text, or the text of a number or Boolean; nil for all else.
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

  /// A number without its fraction, or the nearest limit if it is out of range; the leading digits of a text; 0 for all
  /// else.
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

  /// A number, or the longest leading number of a text; 0 for all else.
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

  /// As ``asDouble``; infinite if too large for a float.
  var asFloat: Float {
    switch scalar {
    // Not via a double, which would round twice.
    case .int(let number): Float(number)
    case .uint64(let number): Float(number)
    default: Float(asDouble)
    }
  }

  /// A URL as it was set; a text as a file path, with `~` expanded; nil for all else.
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

  /// A list with plain objects as elements; nil for all else.
  var asArray: [any Sendable]? {
    if case .array(let elements) = self { elements.map(\.asObject) } else { nil }
  }

  /// A list that holds text only; nil for all else.
  var asStringArray: [String]? { [String](self) }

  /// A dictionary with plain objects as values; nil for all else.
  var asDictionary: [String: any Sendable]? {
    if case .dictionary(let members) = self { members.mapValues(\.asObject) } else { nil }
  }
}

extension Double {
  /// The shortest decimal text that reads as this number.
  ///
  /// A `Float` is stored as the double that it equals, and gets the shortest text that reads as that `Float`: `"12.34"`,
  /// where the double is 12.34000015258789.
  ///
  /// Which of the two types was set is not stored. A number is taken for a double if its own text is short, or if few of its
  /// bits are set, as in 2⁻⁵²: a decimal fraction rounded to a `Float` seldom has few.
  fileprivate var shortestText: String {
    guard let float = Float(exactly: self), significandWidth > 11, hasMoreThan15Digits else { return description }
    return float.description
  }

  /// Whether the exact decimal text of this number has more digits than every double preserves.
  private var hasMoreThan15Digits: Bool {
    // A binary fraction has as many decimal places as binary places.
    var digits = magnitude
    for _ in 0..<max(0, significandWidth - Int(exponent)) {
      if digits >= 1e15 { return true }
      digits *= 10
    }
    return digits >= 1e15
  }
}

/// Parses the beginning of a text as NSString does: white space, a sign, digits; the rest is ignored.
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

  /// An `e` without a digit after it is part of the rest.
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
