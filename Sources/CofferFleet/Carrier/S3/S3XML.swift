/// The XML that a storage sends: nested elements and text, and nothing else that XML has.
///
/// Attributes are skipped, and so is a declaration at the start. Anything else, such as a document type, is refused.
enum S3XML {
  /// The contents of an element, by name: `body` is called with each element without elements of its own.
  ///
  /// - Parameter body: Gets the names of the elements around it and its own, joined by slashes, and the text.
  /// - Throws: `S3XML.Invalid`.
  static func read(_ bytes: [UInt8], _ body: (_ path: String, _ text: String) throws -> Void) throws {
    var rest = bytes[...]
    skipSpace(&rest)
    if rest.starts(with: Array("<?xml".utf8)) {
      guard let end = rest.firstRange(of: Array("?>".utf8)) else { throw Invalid() }
      rest = rest[end.upperBound...]
    }
    var path: [String] = []
    var text: [UInt8] = []
    // Whether the open element has none in it.
    var isLeaf = false
    repeat {
      guard let open = rest.firstIndex(of: UInt8(ascii: "<")) else { throw Invalid() }
      text += rest[..<open]
      guard let close = rest[open...].firstIndex(of: UInt8(ascii: ">")) else { throw Invalid() }
      var tag = rest[(open + 1)..<close]
      rest = rest[(close + 1)...]
      if tag.first == UInt8(ascii: "/") {
        guard let name = path.last, tag.dropFirst().elementsEqual(name.utf8) else { throw Invalid() }
        if isLeaf { try body(path.joined(separator: "/"), try decoded(text)) }
        path.removeLast()
        isLeaf = false
      } else {
        let isEmpty = tag.last == UInt8(ascii: "/")
        if isEmpty { tag = tag.dropLast() }
        let name = tag.prefix { !isSpace($0) }
        guard let first = name.first, isLetter(first), path.count < depthLimit else { throw Invalid() }
        path.append(String(decoding: name, as: UTF8.self))
        if isEmpty {
          try body(path.joined(separator: "/"), "")
          path.removeLast()
        }
        isLeaf = !isEmpty
      }
      text = []
    } while !path.isEmpty
    skipSpace(&rest)
    guard rest.isEmpty else { throw Invalid() }
  }

  struct Invalid: Error {}

  private static let depthLimit = 8

  private static func decoded(_ text: [UInt8]) throws -> String {
    var decoded: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "&") else {
        decoded.append(byte)
        continue
      }
      guard let end = rest.firstIndex(of: UInt8(ascii: ";")), end - rest.startIndex <= 8 else { throw Invalid() }
      decoded += try character(String(decoding: rest[..<end], as: UTF8.self)).utf8
      rest = rest[(end + 1)...]
    }
    guard let string = String(validating: decoded, as: UTF8.self) else { throw Invalid() }
    return string
  }

  private static func character(_ name: String) throws -> String {
    switch name {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let number = name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
      guard name.hasPrefix("#"), let scalar = number.flatMap(Unicode.Scalar.init) else { throw Invalid() }
      return String(scalar)
    }
  }

  private static func skipSpace(_ rest: inout ArraySlice<UInt8>) { rest = rest.drop(while: isSpace) }
  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
  private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5a).contains(byte & 0xdf) }
}
