/// The lines of the names of a file's settings, and of the elements of lists, down to some level.
struct MemberLines {
  /// The number of levels.
  private let depth: Int
  private var path: [String] = []
  private var offsets: [[String]: Int] = [:]

  /// - Parameter depth: 2 for the settings, and what is one level below.
  init(depth: Int = 2) { self.depth = depth }

  /// Called at a name at `offset`, before its value.
  mutating func begin(_ name: String, at offset: Int) {
    path.append(name)
    if path.count <= depth { offsets[path] = offset }
  }

  /// Called at an element of a list at `offset`; it is named by its number, from 0.
  mutating func begin(_ number: Int, at offset: Int) {
    let hasLine = path.count < depth && number < Self.listLimit
    path.append(hasLine ? String(number) : "")
    if hasLine { offsets[path] = offset }
  }

  /// Elements after this many have no line: a list may be as long as the file.
  private static let listLimit = 10_000

  /// Called after the value.
  mutating func end() { path.removeLast() }

  /// The lines in `bytes`, from 1, by the path of names.
  func lines(in bytes: [UInt8]) -> [[String]: Int] {
    var lines: [[String]: Int] = [:]
    var (line, position) = (1, 0)
    for (path, offset) in offsets.sorted(by: { $0.value < $1.value }) {
      line += bytes[position..<offset].count { $0 == UInt8(ascii: "\n") }
      position = offset
      lines[path] = line
    }
    return lines
  }
}

/// The place of a byte in a text, for errors.
package enum TextPlace {
  /// As in `line 2, column 10`, both from 1; a column is a byte.
  package static func words(ofByte offset: Int, in text: some Collection<UInt8>) -> String {
    var (line, column) = (1, 1)
    for byte in text.prefix(offset) {
      if byte == UInt8(ascii: "\n") { (line, column) = (line + 1, 1) } else { column += 1 }
    }
    return "line \(line), column \(column)"
  }
}
