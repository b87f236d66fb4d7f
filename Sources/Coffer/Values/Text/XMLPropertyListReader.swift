#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads property lists in XML, as the document type `PropertyList-1.0.dtd` describes them.
struct XMLPropertyListReader {
  private typealias Problem = PropertyListReader.Problem

  private struct Tag {
    let name: String
    /// Whether it ends with `/>`.
    let isEmpty: Bool
  }

  private var scanner: ByteScanner
  private var depth = 0
  private var count = 0
  private var lines = MemberLines()

  /// The value of `bytes`, text in UTF-8, and the lines of keys.
  static func valueAndLines(_ bytes: [UInt8]) throws(PropertyListReader.Problem) -> PropertyListReader.ValueAndLines {
    var reader = XMLPropertyListReader(scanner: ByteScanner(withPlainLineEnds(bytes)))
    let value = try reader.document { reader, tag throws(Problem) in try reader.element(tag) }
    return (value, reader.lines.lines(in: reader.scanner.bytes))
  }

  /// `bytes`, text in UTF-8, as a file of settings.
  static func fileTree(_ bytes: [UInt8]) throws(PropertyListReader.Problem) -> FileTree {
    var reader = XMLPropertyListReader(scanner: ByteScanner(withPlainLineEnds(bytes)))
    return try reader.document { reader, tag throws(Problem) in
      try reader.outer(tag, levels: FileTree.outerLevels)
    }
  }

  /// CR LF and CR are read as a newline (XML 1.0, section 2.11); a carriage return in a text is written `&#13;`.
  private static func withPlainLineEnds(_ bytes: [UInt8]) -> [UInt8] {
    let (newline, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    guard bytes.contains(carriageReturn) else { return bytes }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    for (index, byte) in bytes.enumerated() {
      if byte != carriageReturn {
        result.append(byte)
      } else if index + 1 == bytes.count || bytes[index + 1] != newline {
        result.append(newline)
      }
    }
    return result
  }

  private mutating func document<Result>(
    _ read: (inout XMLPropertyListReader, Tag) throws(Problem) -> Result
  ) throws(Problem) -> Result {
    try skipMiscellaneous()
    let tag = try openingTag()
    let result: Result
    if tag.name == "plist" {
      guard !tag.isEmpty else { throw problem("it is empty") }
      try skipMiscellaneous()
      result = try read(&self, openingTag())
      try skipMiscellaneous()
      try takeClosingTag(of: tag)
    } else {
      result = try read(&self, tag)
    }
    try skipMiscellaneous()
    guard scanner.isAtEnd else { throw problem("there is data after its end") }
    return result
  }

  private mutating func outer(_ tag: Tag, levels: Int) throws(Problem) -> FileTree {
    guard levels > 0, tag.name == "dict" else { return .value(try element(tag)) }
    try countOne()
    var members = FileTree.Builder()
    try eachMember(of: tag) { reader, name throws(Problem) in
      let tree = try reader.outer(reader.openingTag(), levels: levels - 1)
      guard members.append(name, tree) else { throw reader.problem("a key occurs twice") }
    }
    return members.tree
  }

  private mutating func countOne() throws(Problem) {
    count += 1
    guard count <= JSONReader.countLimit else { throw problem("it has more than \(JSONReader.countLimit) values") }
  }

  // MARK: Elements

  private mutating func element(_ tag: Tag) throws(Problem) -> Value {
    try countOne()
    switch tag.name {
    case "dict": return .dictionary(try dictionary(tag))
    case "array": return .array(try array(tag))
    case "string": return .string(try text(of: tag))
    case "true", "false":
      guard AsciiSpace.trimming(try text(of: tag)).isEmpty else { throw problem("a boolean has contents") }
      return .bool(tag.name == "true")
    case "integer": return try integer(AsciiSpace.trimming(text(of: tag)))
    case "real": return .double(try real(AsciiSpace.trimming(text(of: tag))))
    case "date":
      guard let date = Timestamp.date(AsciiSpace.trimming(try text(of: tag))) else { throw problem("not a date") }
      return .date(date)
    case "data":
      let base64 = try text(of: tag).utf8.filter { !AsciiSpace.contains($0) }
      guard let data = Data(base64Encoded: Data(base64)) else { throw problem("data is not base64") }
      return .data(data)
    default: throw problem("an element is unknown")
    }
  }

  private mutating func dictionary(_ tag: Tag) throws(Problem) -> [String: Value] {
    var members: [String: Value] = [:]
    try eachMember(of: tag) { reader, name throws(Problem) in
      guard members.updateValue(try reader.element(reader.openingTag()), forKey: name) == nil else {
        throw reader.problem(FileTree.reason(forSecond: name, in: members))
      }
    }
    return members
  }

  /// Calls `read` at the value of each key.
  private mutating func eachMember(
    of tag: Tag, _ read: (inout XMLPropertyListReader, _ name: String) throws(Problem) -> Void
  ) throws(Problem) {
    try enter()
    while try !takeEnd(of: tag) {
      let start = scanner.position
      let key = try openingTag()
      guard key.name == "key" else { throw problem("a key is missing") }
      let name = try text(of: key)
      try skipMiscellaneous()
      lines.begin(name, at: start)
      try read(&self, name)
      lines.end()
    }
    depth -= 1
  }

  private mutating func array(_ tag: Tag) throws(Problem) -> [Value] {
    var elements: [Value] = []
    try enter()
    while try !takeEnd(of: tag) {
      lines.begin(elements.count, at: scanner.position)
      elements.append(try element(openingTag()))
      lines.end()
    }
    depth -= 1
    return elements
  }

  private mutating func enter() throws(Problem) {
    depth += 1
    guard depth <= JSONReader.depthLimit else { throw problem("it nests deeper than \(JSONReader.depthLimit) levels") }
  }

  // MARK: Scalars

  private func integer(_ text: String) throws(Problem) -> Value {
    if let number = Int64(text) { return .int(number) }
    if let number = UInt64(text) { return .uint64(number) }
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    if digits.hasPrefix("0x") || digits.hasPrefix("0X") {
      let number = String(digits.dropFirst(2))
      if digits.count < text.count {
        if let negative = Int64("-\(number)", radix: 16) { return .int(negative) }
      } else if let positive = UInt64(number, radix: 16) {
        return Int64(exactly: positive).map(Value.int) ?? .uint64(positive)
      }
    }
    throw problem("not an integer, or one that does not fit")
  }

  private func real(_ text: String) throws(Problem) -> Double {
    guard let number = DecimalText.double(text) else { throw problem("not a real number, or one beyond 64 bits") }
    return number
  }

  // MARK: Text

  private mutating func text(of tag: Tag) throws(Problem) -> String {
    guard !tag.isEmpty else { return "" }
    var result: [UInt8] = []
    while true {
      result.append(contentsOf: scanner.take { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: "&") })
      if scanner.take("<![CDATA[") {
        guard let content = scanner.take(through: "]]>") else { throw problem("the end of CDATA is missing") }
        result.append(contentsOf: content)
      } else if scanner.take("&") {
        result.append(contentsOf: String(try character()).utf8)
      } else if try !takeComment() {
        try takeClosingTag(of: tag)
        return String(decoding: result, as: UTF8.self)
      }
    }
  }

  private mutating func character() throws(Problem) -> Unicode.Scalar {
    let name = String(decoding: scanner.take { $0 != UInt8(ascii: ";") }.prefix(10), as: UTF8.self)
    guard scanner.take(";") else { throw problem("the end of a character reference is missing") }
    switch name {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let number =
        name.utf8.contains(UInt8(ascii: "+"))
        ? nil
        : name.hasPrefix("#x")
          ? UInt32(name.dropFirst(2), radix: 16) : name.hasPrefix("#") ? UInt32(name.dropFirst()) : nil
      guard let scalar = number.flatMap(Unicode.Scalar.init) else { throw problem("a character reference is unknown") }
      return scalar
    }
  }

  // MARK: Tags

  private mutating func openingTag() throws(Problem) -> Tag {
    guard scanner.take("<") else { throw problem("an element is missing") }
    let name = scanner.take { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    // Attributes are ignored; a `>` in one is written `&gt;`.
    guard let rest = scanner.take(through: ">") else { throw problem("the end of a tag is missing") }
    if let first = rest.first, !AsciiSpace.contains(first), first != UInt8(ascii: "/") {
      throw problem("an element is unknown")
    }
    return Tag(name: String(decoding: name, as: UTF8.self), isEmpty: rest.last == UInt8(ascii: "/"))
  }

  private mutating func takeClosingTag(of tag: Tag) throws(Problem) {
    guard scanner.take("</"),
      scanner.take(while: { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }).elementsEqual(tag.name.utf8)
    else { throw problem("the end of an element is missing") }
    scanner.skipSpace()
    guard scanner.take(">") else { throw problem("the end of an element is missing") }
  }

  /// Whether a list of elements ends here.
  private mutating func takeEnd(of tag: Tag) throws(Problem) -> Bool {
    if tag.isEmpty { return true }
    try skipMiscellaneous()
    var ahead = scanner
    guard ahead.take("</") else { return false }
    try takeClosingTag(of: tag)
    return true
  }

  /// White space, comments, and the declarations at the beginning.
  private mutating func skipMiscellaneous() throws(Problem) {
    while true {
      scanner.skipSpace()
      if scanner.take("<?") {
        guard scanner.take(through: "?>") != nil else { throw problem("the end of a declaration is missing") }
      } else if scanner.take("<!DOCTYPE") {
        guard let declaration = scanner.take(through: ">"), !declaration.contains(UInt8(ascii: "[")) else {
          throw problem("its document type declares more than a name")
        }
      } else if try !takeComment() {
        return
      }
    }
  }

  private mutating func takeComment() throws(Problem) -> Bool {
    guard scanner.take("<!--") else { return false }
    guard scanner.take(through: "-->") != nil else { throw problem("the end of a comment is missing") }
    return true
  }

  private func problem(_ reason: String) -> Problem {
    Problem(reason: "\(reason), \(TextPlace.words(ofByte: scanner.position, in: scanner.bytes))")
  }
}
