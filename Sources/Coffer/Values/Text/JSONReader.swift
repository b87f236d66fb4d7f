/// Reads JSON text (RFC 8259) into a value.
///
/// Foundation's `JSONDecoder` does not distinguish `1.0` from `1`, silently drops one of two equal names, and accepts a
/// comma before a closing bracket. A settings tool must store exactly what was typed.
package struct JSONReader {
  /// Why a text is not JSON, and where.
  package struct Problem: Error {
    package let reason: String
    /// In bytes from the start of the text.
    package let offset: Int
    /// Whether it is JSON, but holds a number that cannot be stored exactly.
    package var isNumber = false
  }

  /// The maximum depth of arrays and dictionaries, to bound the stack.
  package static let depthLimit = 200
  /// The maximum number of values in JSON or a property list: each may take a byte of a file, and many times as much memory.
  package static let countLimit = 4_000_000

  private let bytes: [UInt8]
  private var position = 0
  private var depth = 0
  private var count = 0
  /// nil if lines are not wanted.
  private var lines: MemberLines?
  private var roundsNumbers = false

  /// Parses the whole of `text` as one value.
  ///
  /// - Parameter roundsNumbers: Whether an integer beyond 64 bits becomes the nearest floating-point number, and a number too
  ///   small for one becomes zero: for text that stays stored as text. They are errors otherwise.
  package static func value(_ text: String, roundsNumbers: Bool = false) throws(Problem) -> Value {
    var reader = JSONReader(bytes: Array(text.utf8))
    reader.roundsNumbers = roundsNumbers
    return try reader.whole { reader throws(Problem) in try reader.value() }
  }

  /// Parses the whole of `text` as a file of settings.
  package static func fileTree(_ text: String) throws(Problem) -> FileTree {
    var reader = JSONReader(bytes: Array(text.utf8))
    return try reader.whole { reader throws(Problem) in try reader.outer(levels: FileTree.outerLevels) }
  }

  /// The value, and the lines of names and elements down to some level.
  package static func valueAndLines(
    _ text: String, depth: Int = 2
  ) throws(Problem) -> (value: Value, lines: [[String]: Int]) {
    var reader = JSONReader(bytes: Array(text.utf8))
    reader.lines = MemberLines(depth: depth)
    let value = try reader.whole { reader throws(Problem) in try reader.value() }
    return (value, reader.lines?.lines(in: reader.bytes) ?? [:])
  }

  private mutating func whole<Result>(
    _ body: (inout JSONReader) throws(Problem) -> Result
  ) throws(Problem) -> Result {
    let result = try body(&self)
    skipSpace()
    guard position == bytes.count else { throw problem("text after the value") }
    return result
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  // MARK: - Values

  private mutating func value() throws(Problem) -> Value {
    skipSpace()
    guard let byte = peek() else { throw problem("a value is missing") }
    try countOne()
    switch byte {
    case UInt8(ascii: "{"): return try nested { reader throws(Problem) in try reader.dictionary() }
    case UInt8(ascii: "["): return try nested { reader throws(Problem) in try reader.array() }
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    default: throw problem("a value cannot begin like this")
    }
  }

  private mutating func outer(levels: Int) throws(Problem) -> FileTree {
    skipSpace()
    guard levels > 0, peek() == UInt8(ascii: "{") else { return .value(try value()) }
    try countOne()
    return try nested { reader throws(Problem) in
      var members = FileTree.Builder()
      try reader.eachMember { reader, name, start throws(Problem) in
        guard members.append(name, try reader.outer(levels: levels - 1)) else {
          throw Problem(reason: "a name occurs twice", offset: start)
        }
      }
      return members.tree
    }
  }

  private mutating func countOne() throws(Problem) {
    count += 1
    guard count <= Self.countLimit else { throw problem("more than \(Self.countLimit) values") }
  }

  private mutating func nested<Result>(
    _ body: (inout JSONReader) throws(Problem) -> Result
  ) throws(Problem) -> Result {
    guard depth < Self.depthLimit else { throw problem("nested deeper than \(Self.depthLimit) levels") }
    depth += 1
    position += 1
    let result = try body(&self)
    depth -= 1
    return result
  }

  private mutating func array() throws(Problem) -> Value {
    var elements: [Value] = []
    skipSpace()
    if take("]") { return .array(elements) }
    while true {
      skipSpace()
      lines?.begin(elements.count, at: position)
      elements.append(try value())
      lines?.end()
      skipSpace()
      if take("]") { return .array(elements) }
      guard take(",") else { throw problem("a comma or ] is missing") }
    }
  }

  private mutating func dictionary() throws(Problem) -> Value {
    var members: [String: Value] = [:]
    try eachMember { reader, name, start throws(Problem) in
      guard members.updateValue(try reader.value(), forKey: name) == nil else {
        throw Problem(reason: FileTree.reason(forSecond: name, in: members), offset: start)
      }
    }
    return .dictionary(members)
  }

  /// Calls `read` at the value of each member, after an opening brace.
  private mutating func eachMember(
    _ read: (_ reader: inout JSONReader, _ name: String, _ start: Int) throws(Problem) -> Void
  ) throws(Problem) {
    skipSpace()
    if take("}") { return }
    while true {
      skipSpace()
      let start = position
      guard peek() == UInt8(ascii: "\"") else { throw problem("a name in quotes is missing") }
      let name = try string()
      skipSpace()
      guard take(":") else { throw problem("a colon is missing") }
      lines?.begin(name, at: start)
      try read(&self, name, start)
      lines?.end()
      skipSpace()
      if take("}") { return }
      guard take(",") else { throw problem("a comma or } is missing") }
    }
  }

  private mutating func word(_ text: String, _ value: Value) throws(Problem) -> Value {
    guard bytes[position...].starts(with: text.utf8) else { throw problem("unknown word") }
    position += text.utf8.count
    return value
  }

  // MARK: - Numbers

  private mutating func number() throws(Problem) -> Value {
    let start = position
    var isWhole = true
    _ = take("-")
    if !take("0") {
      guard skipDigits() else { throw problem("a digit is missing") }
    }
    if take(".") {
      isWhole = false
      guard skipDigits() else { throw problem("a digit is missing") }
    }
    if take("e") || take("E") {
      isWhole = false
      if !take("+") { _ = take("-") }
      guard skipDigits() else { throw problem("a digit is missing") }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    // Minus zero exists only as a floating-point number.
    if isWhole, text != "-0" {
      if let number = Int64(text) { return .int(number) }
      if let number = UInt64(text) { return .uint64(number) }
      guard roundsNumbers else {
        throw Problem(
          reason: "an integer beyond 64 bits; put it in quotes, or give it an exponent to have it rounded",
          offset: start,
          isNumber: true)
      }
    }
    guard let number = Double(text), number.isFinite, roundsNumbers || DecimalText.isInRange(number, text) else {
      throw Problem(reason: DecimalText.problem, offset: start, isNumber: true)
    }
    return .double(number)
  }

  private mutating func skipDigits() -> Bool {
    let start = position
    while let byte = peek(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    return position > start
  }

  // MARK: - Strings

  private mutating func string() throws(Problem) -> String {
    position += 1
    var result: [UInt8] = []
    while true {
      let start = position
      skipPlainBytes()
      let plain = bytes[start..<position]
      switch peek() {
      case UInt8(ascii: "\""):
        position += 1
        // Most strings have no escapes; they are copied once.
        return String(decoding: result.isEmpty ? plain : (result + plain)[...], as: UTF8.self)
      case UInt8(ascii: "\\"):
        position += 1
        result += plain
        result.append(contentsOf: String(try escape()).utf8)
      case nil: throw problem("a closing quote is missing")
      default: throw problem("a control character must be escaped")
      }
    }
  }

  /// Advances to a quote, a backslash, a control character or the end.
  private mutating func skipPlainBytes() {
    position = bytes.withUnsafeBufferPointer { bytes in
      var end = position
      while end < bytes.count, bytes[end] >= 0x20, bytes[end] != UInt8(ascii: "\""), bytes[end] != UInt8(ascii: "\\") {
        end += 1
      }
      return end
    }
  }

  private mutating func escape() throws(Problem) -> Unicode.Scalar {
    guard let byte = peek() else { throw problem("a closing quote is missing") }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try unicodeEscape()
    default: throw problem("unknown escape")
    }
  }

  private mutating func unicodeEscape() throws(Problem) -> Unicode.Scalar {
    let first = try fourDigits()
    if let scalar = Unicode.Scalar(first) { return scalar }
    // Otherwise it is half of a surrogate pair; the other half has to follow.
    guard first < 0xdc00, take("\\"), take("u") else { throw problem("half of a surrogate pair") }
    let second = try fourDigits()
    guard (0xdc00..<0xe000).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw problem("half of a surrogate pair") }
    return scalar
  }

  private mutating func fourDigits() throws(Problem) -> UInt32 {
    guard position + 4 <= bytes.count else { throw problem("four hexadecimal digits are missing") }
    var result: UInt32 = 0
    for byte in bytes[position..<position + 4] {
      guard let digit = HexText.value(ofDigit: byte) else { throw problem("four hexadecimal digits are missing") }
      result = result << 4 | UInt32(digit)
    }
    position += 4
    return result
  }

  // MARK: - Bytes

  private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek() == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func skipSpace() {
    while let byte = peek(), byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
  }

  private func problem(_ reason: String) -> Problem { Problem(reason: reason, offset: position) }
}
