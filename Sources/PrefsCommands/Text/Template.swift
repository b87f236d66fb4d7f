/// A text with references to settings.
struct Template {
  enum Piece {
    case text(ArraySlice<UInt8>)
    /// The text between `{{prefs:` and `}}`, the fallback after a `|`, and the offset of the reference.
    case reference(String, fallback: ArraySlice<UInt8>?, offset: Int)
  }

  private(set) var pieces: [Piece] = []
  private let bytes: [UInt8]
  private let name: String

  private static let opening = Array("{{".utf8)
  private static let word = Array("prefs".utf8)
  private static let closing = Array("}}".utf8)

  /// A name may be split at each of its slashes, so the cost of a long one is quadratic.
  private static let nameByteLimit = 4096

  /// - Throws: ``Failure`` with the status `format` when a reference does not end on its line, has no colon or no key, is
  ///   too long, or is not UTF-8.
  init(_ bytes: [UInt8], named name: String) throws {
    self.bytes = bytes
    self.name = name
    var position = 0
    var searched = 0
    while let start = Self.find(Self.opening, in: bytes, from: searched) {
      guard let inside = try reference(at: start) else {
        // Of three braces, the last two may begin a reference.
        searched = start + 1
        continue
      }
      let line = bytes[inside...].prefix { $0 != UInt8(ascii: "\n") }
      guard let end = Self.find(Self.closing, in: bytes, from: inside), end < line.endIndex else {
        throw Failure(.format, "\(place(start)): {{prefs: has no closing }} on its line.")
      }
      let content = bytes[inside..<end]
      let bar = content.firstIndex(of: UInt8(ascii: "|"))
      let key = Self.trimmed(content[..<(bar ?? content.endIndex)])
      guard key.count <= Self.nameByteLimit else {
        throw Failure(
          .format, "\(place(start)): the name of the key has \(key.count) bytes; the limit is \(Self.nameByteLimit).")
      }
      guard let text = String(validating: key, as: UTF8.self) else {
        throw Failure(.format, "\(place(start)): the name of the key is not valid UTF-8.")
      }
      guard !text.isEmpty else { throw Failure(.format, "\(place(start)): {{prefs: names no key.") }
      if start > position { pieces.append(.text(bytes[position..<start])) }
      let fallback = bar.map { Self.trimmed(content[($0 + 1)...]) }
      pieces.append(.reference(text, fallback: fallback, offset: start))
      position = end + Self.closing.count
      searched = position
    }
    pieces.append(.text(bytes[position...]))
  }

  /// The index of the key's name in the braces at `start`; nil if they are not a reference.
  private func reference(at start: Int) throws -> Int? {
    let rest = Self.trimmedAtStart(bytes[(start + Self.opening.count)...])
    guard rest.starts(with: Self.word) else { return nil }
    let behind = rest.dropFirst(Self.word.count)
    if behind.first == UInt8(ascii: ":") { return behind.startIndex + 1 }
    // `{{prefsFor …}}` belongs to another program; `{{prefs web/port}}` is a mistake.
    let isLonger = behind.first.map { byte in
      byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte >= 0x80
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    guard isLonger ?? true else {
      throw Failure(
        .format, "\(place(start)): {{prefs is not a placeholder; write {{prefs:KEY}} or {{prefs:COLLECTION/KEY}}.")
    }
    return nil
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func trimmedAtStart(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> { bytes.drop(while: isSpace) }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = trimmedAtStart(bytes)
    while let last = bytes.last, isSpace(last) { bytes.removeLast() }
    return bytes
  }

  /// An offset for display: `name, line 3, column 7`, both from 1, columns in Unicode characters.
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
