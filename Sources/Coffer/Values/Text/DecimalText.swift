/// Decimal text as a floating-point number.
///
/// Any such number is rounded to the nearest one with 64 bits. A file whose number has none near it is refused: Swift, like
/// strtod(3), reads 1e400 as infinity and 1e-400 as zero.
package enum DecimalText {
  /// - Returns: nil for text that is no number, or one beyond the range.
  package static func double(_ text: String) -> Double? {
    guard let number = Double(text), isInRange(number, text) else { return nil }
    return number
  }

  /// Whether `number`, which was read from `text`, is infinite or zero only if the text says so.
  package static func isInRange(_ number: Double, _ text: String) -> Bool {
    if number.isInfinite { return !text.utf8.contains { isDigit($0) } }
    guard number == 0, !text.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "x") }) else { return true }
    let significand = text.utf8.prefix { $0 | 0x20 != UInt8(ascii: "e") }
    return !significand.contains { isDigit($0) && $0 != UInt8(ascii: "0") }
  }

  /// Why a number is not read.
  package static let problem = "a number is too large or too small for 64 bits; put it in quotes to have it as text"

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
