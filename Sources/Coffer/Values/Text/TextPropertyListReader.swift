#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads property lists in the old text form, where all scalars are text or data: `{ name = (a, "b c", <0a1b>); }`.
struct TextPropertyListReader {
  private typealias Problem = PropertyListReader.Problem

  private var scanner: ByteScanner
  private var depth = 0
  private var count = 0
  private var lines = MemberLines()

  /// The value of `bytes`, text in UTF-8, and the lines of keys.
  static func valueAndLines(_ bytes: [UInt8]) throws(PropertyListReader.Problem) -> PropertyListReader.ValueAndLines {
    var reader = TextPropertyListReader(scanner: ByteScanner(bytes))
    let value = try reader.value()
    try reader.skipSpace()
    if reader.scanner.isAtEnd { return (value, reader.lines.lines(in: bytes)) }
    // A strings file is the inside of a dictionary.
    reader = TextPropertyListReader(scanner: ByteScanner(bytes))
    let members = try reader.members()
    guard reader.scanner.isAtEnd else { throw reader.problem("there is data after its end") }
    return (.dictionary(members), reader.lines.lines(in: bytes))
  }

  // MARK: Values

  private mutating func value() throws(Problem) -> Value {
    try skipSpace()
    count += 1
    guard count <= JSONReader.countLimit else { throw problem("it has more than \(JSONReader.countLimit) values") }
    if scanner.take("{") {
      try enter()
      let members = try members()
      guard scanner.take("}") else { throw problem("a closing brace is missing") }
      depth -= 1
      return .dictionary(members)
    }
    if scanner.take("(") { return .array(try elements()) }
    if scanner.take("<") { return .data(try data()) }
    return .string(try string())
  }

  /// Reads members until no name follows.
  private mutating func members() throws(Problem) -> [String: Value] {
    var members: [String: Value] = [:]
    while true {
      try skipSpace()
      if scanner.isAtEnd || scanner.peek() == UInt8(ascii: "}") { return members }
      let start = scanner.position
      let name = try string()
      try skipSpace()
      guard scanner.take("=") else { throw problem("an equals sign is missing") }
      lines.begin(name, at: start)
      guard members.updateValue(try value(), forKey: name) == nil else {
        throw problem(FileTree.reason(forSecond: name, in: members))
      }
      lines.end()
      try skipSpace()
      guard scanner.take(";") || scanner.peek() == UInt8(ascii: "}") else { throw problem("a semicolon is missing") }
    }
  }

  private mutating func elements() throws(Problem) -> [Value] {
    var elements: [Value] = []
    try enter()
    while true {
      try skipSpace()
      if scanner.take(")") { break }
      lines.begin(elements.count, at: scanner.position)
      elements.append(try value())
      lines.end()
      try skipSpace()
      if scanner.take(",") { continue }
      guard scanner.take(")") else { throw problem("a comma or a closing parenthesis is missing") }
      break
    }
    depth -= 1
    return elements
  }

  private mutating func enter() throws(Problem) {
    depth += 1
    guard depth <= JSONReader.depthLimit else { throw problem("it nests deeper than \(JSONReader.depthLimit) levels") }
  }

  private mutating func data() throws(Problem) -> Data {
    guard let digits = scanner.take(through: ">"),
      let bytes = HexText.bytes(String(decoding: digits, as: UTF8.self))
    else { throw problem("data is not pairs of hexadecimal digits") }
    return Data(bytes)
  }

  // MARK: Strings

  private mutating func string() throws(Problem) -> String {
    if scanner.take("\"") { return try quoted(UInt8(ascii: "\"")) }
    if scanner.take("'") { return try quoted(UInt8(ascii: "'")) }
    let word = scanner.take(while: Self.isWordByte)
    guard !word.isEmpty else { throw problem("a value is missing") }
    return String(decoding: word, as: UTF8.self)
  }

  /// Characters that need no quotes: letters, digits, and `_ $ / : . -`.
  private static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      // The digits are between the slash and the colon.
      UInt8(ascii: "-")...UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "$"):
      true
    default: false
    }
  }

  private mutating func quoted(_ quote: UInt8) throws(Problem) -> String {
    var result: [UInt8] = []
    while let byte = scanner.next() {
      switch byte {
      case quote: return String(decoding: result, as: UTF8.self)
      case UInt8(ascii: "\\"): result.append(contentsOf: String(try escape()).utf8)
      default: result.append(byte)
      }
    }
    throw problem("a closing quote is missing")
  }

  private mutating func escape() throws(Problem) -> Unicode.Scalar {
    guard let byte = scanner.peek(), byte < 0x80 else { throw problem("an escape is unknown") }
    if (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) { return try octalEscape() }
    _ = scanner.next()
    switch byte {
    case UInt8(ascii: "a"): return "\u{7}"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "v"): return "\u{b}"
    case UInt8(ascii: "U"), UInt8(ascii: "u"): return try unicodeEscape()
    default: return Unicode.Scalar(byte)
    }
  }

  /// Up to three digits; above 127 they would be in NeXTSTEP's encoding, which is no longer in use.
  private mutating func octalEscape() throws(Problem) -> Unicode.Scalar {
    var code: UInt8 = 0
    for _ in 0..<3 {
      guard let byte = scanner.peek(), (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) else { break }
      guard code < 0x10 else { throw problem("an escape is unknown") }
      code = code * 8 + (byte - UInt8(ascii: "0"))
      _ = scanner.next()
    }
    return Unicode.Scalar(code)
  }

  /// Up to four digits: a UTF-16 unit.
  private mutating func unicodeEscape() throws(Problem) -> Unicode.Scalar {
    let first = try unit()
    if let scalar = Unicode.Scalar(first) { return scalar }
    // Otherwise it is half of a surrogate pair; the other half has to follow.
    guard UTF16.isLeadSurrogate(first), scanner.take("\\U") || scanner.take("\\u") else {
      throw problem("half of a surrogate pair")
    }
    let second = try unit()
    guard UTF16.isTrailSurrogate(second),
      let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xd800) << 10 + (UInt32(second) - 0xdc00))
    else { throw problem("half of a surrogate pair") }
    return scalar
  }

  private mutating func unit() throws(Problem) -> UInt16 {
    var unit: UInt16 = 0
    var count = 0
    while count < 4, let digit = scanner.peek().flatMap(HexText.value(ofDigit:)) {
      unit = unit << 4 | UInt16(digit)
      _ = scanner.next()
      count += 1
    }
    guard count > 0 else { throw problem("hexadecimal digits are missing") }
    return unit
  }

  // MARK: White space and comments

  private mutating func skipSpace() throws(Problem) {
    while true {
      scanner.skipSpace()
      if scanner.take("//") {
        _ = scanner.take { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
      } else if scanner.take("/*") {
        guard scanner.take(through: "*/") != nil else { throw problem("the end of a comment is missing") }
      } else {
        return
      }
    }
  }

  private func problem(_ reason: String) -> Problem {
    Problem(reason: "\(reason), \(TextPlace.words(ofByte: scanner.position, in: scanner.bytes))")
  }
}
