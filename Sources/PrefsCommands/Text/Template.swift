/// A text with references to settings.
struct Template {
  enum Piece {
    case text(ArraySlice<UInt8>)
    /// What stands between `{{prefs:` and `}}`, and where the reference begins.
    case reference(String, offset: Int)
  }

  private(set) var pieces: [Piece] = []
  private let bytes: [UInt8]
  private let name: String

  private static let opening = Array("{{prefs:".utf8)
  private static let closing = Array("}}".utf8)

  /// - Throws: ``Failure`` with the status `format` when a reference does not end on its line, or is not UTF-8.
  init(_ bytes: [UInt8], named name: String) throws {
    self.bytes = bytes
    self.name = name
    var position = 0
    while let start = Self.find(Self.opening, in: bytes, from: position) {
      let inside = start + Self.opening.count
      let line = bytes[inside...].prefix { $0 != UInt8(ascii: "\n") }
      guard let end = Self.find(Self.closing, in: bytes, from: inside), end < line.endIndex else {
        throw Failure(.format, "\(place(start)): {{prefs: has no }} on its line.")
      }
      guard let text = String(validating: bytes[inside..<end], as: UTF8.self) else {
        throw Failure(.format, "\(place(start)): the name of the key is not valid UTF-8.")
      }
      if start > position { pieces.append(.text(bytes[position..<start])) }
      pieces.append(.reference(text, offset: start))
      position = end + Self.closing.count
    }
    pieces.append(.text(bytes[position...]))
  }

  /// Where an offset is, for people: `name, line 3, column 7`, both counted from 1, columns in characters of Unicode.
  func place(_ offset: Int) -> String {
    let before = bytes[..<offset]
    let line = before.count { $0 == UInt8(ascii: "\n") } + 1
    let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    let column = String(decoding: before[lineStart...], as: UTF8.self).unicodeScalars.count + 1
    return "\(name), line \(line), column \(column)"
  }

  private static func find(_ wanted: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    guard let first = wanted.first, bytes.count - start >= wanted.count else { return nil }
    return (start...(bytes.count - wanted.count)).first { index in
      bytes[index] == first && bytes[index..<index + wanted.count].elementsEqual(wanted)
    }
  }
}
