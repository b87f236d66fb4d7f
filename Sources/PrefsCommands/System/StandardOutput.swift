/// Standard output: the answer of a command and nothing else, written in large pieces.
package struct StandardOutput {
  private var buffer: [UInt8] = []
  private let pager: Pager?
  private static let pieceSize = 256 << 10

  /// - Parameter pager: Shows an answer that does not fit on the terminal.
  init(pager: Pager? = nil) {
    self.pager = pager
  }

  mutating func write(_ text: String) {
    buffer.append(contentsOf: text.utf8)
  }

  mutating func write(_ bytes: some Sequence<UInt8>) {
    buffer.append(contentsOf: bytes)
  }

  /// Writes out what has gathered, when that is much.
  ///
  /// To be called between records.
  mutating func breathe() throws {
    // Whether it fits is known only of the whole.
    if pager == nil, buffer.count >= Self.pieceSize { try finish() }
  }

  /// Writes out what has gathered.
  mutating func finish() throws {
    if try pager?.show(buffer) != true { try FileDescriptor.writeAll(buffer, to: 1, named: "standard output") }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes `text` as the whole answer.
  package static func write(_ text: String) throws {
    var output = StandardOutput()
    output.write(text)
    try output.finish()
  }
}

/// Messages for the person at the terminal, on standard error.
package enum Message {
  /// Writes `prefs: text`.
  ///
  /// Control characters are shown escaped: a key must not be able to steer the terminal.
  package static func error(_ text: String) {
    write("prefs: " + DisplayText.escapingControls(text, keepingNewlines: true) + "\n")
  }

  /// Writes `text` as it is.
  ///
  /// What cannot be said there cannot be said at all, so failure is passed over.
  static func write(_ text: String) {
    try? FileDescriptor.writeAll(Array(text.utf8), to: 2, named: "standard error")
  }
}
