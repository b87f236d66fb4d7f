/// The lines of the names of a file's settings: at the top level, and one level below.
struct MemberLines {
  private var path: [String] = []
  private var offsets: [[String]: Int] = [:]

  /// Called at a name at `offset`, before its value.
  mutating func begin(_ name: String, at offset: Int) {
    path.append(name)
    if path.count <= 2 { offsets[path] = offset }
  }

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
