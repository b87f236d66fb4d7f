/// On which lines the names of a file's settings stand: those at the top, and those one level below.
struct MemberLines {
  private var path: [String] = []
  private var offsets: [[String]: Int] = [:]

  /// A name that stands at `offset`, whose value follows.
  mutating func begin(_ name: String, at offset: Int) {
    path.append(name)
    if path.count <= 2 { offsets[path] = offset }
  }

  /// The value has come to its end.
  mutating func end() { path.removeLast() }

  /// The lines in `bytes`, from 1, by the names from the top.
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
