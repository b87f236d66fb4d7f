#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The program in `PAGER`, else `less`, for an answer that is longer than the terminal.
struct Pager {
  private let command: String

  /// nil unless standard input and output are a terminal that can move its cursor.
  init?() {
    guard Terminal.isTerminal(0), Terminal.isTerminal(1), Environment.variable("TERM") != "dumb" else { return nil }
    // An empty value turns paging off.
    if let named = getenv("PAGER"), named.pointee == 0 { return nil }
    command = Environment.variable("PAGER") ?? "less"
  }

  /// Shows `answer` until the user quits the pager.
  ///
  /// - Returns: Whether it was shown: false if the answer fits, or the pager cannot be run.
  func show(_ answer: [UInt8]) throws -> Bool {
    guard let size = Terminal.size(of: 1), !Self.fits(answer, rows: size.rows, columns: size.columns) else {
      return false
    }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Failure.system("a pipe", errno: errno) }
    let (input, output) = (ends[0], ends[1])
    FileDescriptor.closeOnExecution(output)
    // Before the pager runs: an interrupt is for the pager alone, and would otherwise end this process.
    return SignalHandlers.ignoring(Self.signals) {
      let child = start(reading: input)
      close(input)
      // The user may quit before the end.
      if child != nil { try? FileDescriptor.writeAll(answer, to: output, named: "the pager") }
      close(output)
      return child.map(Self.wait) ?? false
    }
  }

  // MARK: - Size

  /// Whether `answer` leaves the last row of the terminal free, for the next prompt.
  static func fits(_ answer: [UInt8], rows: Int, columns: Int) -> Bool {
    var taken = 0
    for line in answer.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast() {
      taken += max(1, (width(line) + columns - 1) / columns)
      if taken >= rows { return false }
    }
    return true
  }

  /// The number of characters of `line`, without the escape sequences for colour.
  private static func width(_ line: ArraySlice<UInt8>) -> Int {
    var width = 0
    var isEscape = false
    for scalar in String(decoding: line, as: UTF8.self).unicodeScalars {
      if isEscape {
        isEscape = scalar != "m"
      } else if scalar == "\u{1b}" {
        isEscape = true
      } else {
        width += 1
      }
    }
    return width
  }

  // MARK: - The process

  private static let signals = [SIGINT, SIGQUIT, SIGPIPE]

  /// nil when it cannot be started.
  private func start(reading input: Int32) -> pid_t? {
    // Keep colours (R), keep the screen (X), and exit if one page is enough (F).
    setenv("LESS", "FRX", 0)
    return try? ChildProcess.start("/bin/sh", ["sh", "-c", command]) { actions, attributes in
      ChildProcess.restore(Self.signals, &attributes)
      posix_spawn_file_actions_adddup2(&actions, input, 0)
      if input != 0 { posix_spawn_file_actions_addclose(&actions, input) }
    }
  }

  /// Whether the shell found the pager.
  private static func wait(for child: pid_t) -> Bool {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 { guard errno == EINTR else { return true } }
    let code = status & 0x7f == 0 ? (status >> 8) & 0xff : 0
    return code != ExitStatus.notExecutable.rawValue && code != ExitStatus.commandNotFound.rawValue
  }
}
