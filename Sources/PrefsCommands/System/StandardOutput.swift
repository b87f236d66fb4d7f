#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Standard output: only the command's answer, written in large pieces.
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

  /// Writes the buffer out if it is large.
  ///
  /// Call this between records.
  mutating func breathe() throws {
    // Whether it fits the terminal is known only at the end.
    if pager == nil, buffer.count >= Self.pieceSize { try finish() }
  }

  /// Writes the buffer out.
  mutating func finish() throws {
    if try pager?.show(buffer) != true { try FileDescriptor.writeAll(buffer, to: 1, named: "standard output") }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes records for other programs.
  ///
  /// - Parameter endsWithNul: Whether U+0000 ends each, and its fields are as they are.
  mutating func write(records: some Sequence<[String]>, endsWithNul: Bool = false) throws {
    for fields in records {
      if endsWithNul { try write(nulRecord: fields.joined(separator: "\t")) } else { write(DisplayText.record(fields)) }
      try breathe()
    }
  }

  /// Writes a record that U+0000 ends.
  ///
  /// - Throws: ``Failure`` if it contains one, which would make two records of it.
  mutating func write(nulRecord text: String) throws {
    guard !text.utf8.contains(0) else {
      throw Failure(
        .format,
        "a name or value contains U+0000, which ends the records of -0. Use --plain, which escapes it, or --json.")
    }
    write(text + "\0")
  }

  /// Writes `text` as the whole answer.
  package static func write(_ text: String) throws {
    var output = StandardOutput()
    output.write(text)
    try output.finish()
  }

  /// Writes `text` as the whole answer of a command that has changed something.
  ///
  /// - Parameter done: What is done, and stays so if the answer cannot be written: a sentence without its full stop.
  package static func report(_ text: String, of done: String) throws {
    try UnwrittenReport.during(done) { try write(text) }
  }
}

/// What a command has done is done, but its answer could not be written.
package struct UnwrittenReport: Error {
  /// What is done: a sentence without its full stop.
  let done: String
  let cause: any Error

  /// Runs `write`, which writes the answer.
  package static func during(_ done: String, _ write: () throws -> Void) throws {
    // A reader that has gone must not end the process before it has said what is done.
    signal(SIGPIPE, SIG_IGN)
    do { try write() } catch { throw UnwrittenReport(done: done, cause: error) }
  }
}

/// Messages for the user, on standard error.
package enum Message {
  /// Writes `prefs: text`.
  ///
  /// Control characters are escaped: a key must not be able to control the terminal, or to look like another line.
  package static func error(_ text: String) { error(lines: [text]) }

  /// Writes `prefs: `, and all lines.
  static func error(lines: [String]) {
    write("prefs: " + lines.map { DisplayText.escapingControls($0) + "\n" }.joined())
  }

  /// Writes `text` unchanged.
  ///
  /// Failures are ignored, because there is no other place to report them.
  static func write(_ text: String) {
    try? FileDescriptor.writeAll(Array(text.utf8), to: 2, named: "standard error")
  }
}
