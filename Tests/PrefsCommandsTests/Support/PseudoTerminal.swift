import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The near end of a terminal, for a person that types by program.
final class PseudoTerminal {
  private let controller: Int32
  /// The far end, held open: when the last holder closes it the controller reads an error instead of what is left.
  private let terminal: Int32
  let path: String
  private(set) var shown = ""

  init() throws {
    controller = PseudoTerminalCalls.posix_openpt(O_RDWR | O_NOCTTY)
    try #require(controller >= 0)
    try #require(PseudoTerminalCalls.grantpt(controller) == 0 && PseudoTerminalCalls.unlockpt(controller) == 0)
    path = try #require(PseudoTerminalCalls.name(controller))
    terminal = open(path, O_RDWR | O_NOCTTY)
    try #require(terminal >= 0)
    _ = fcntl(controller, F_SETFD, FD_CLOEXEC)
    _ = fcntl(terminal, F_SETFD, FD_CLOEXEC)
  }

  deinit {
    close(terminal)
    close(controller)
  }

  /// Gives it a size, which a new one has not.
  func resize(rows: UInt16, columns: UInt16) {
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(controller, UInt(TIOCSWINSZ), &size)
  }

  /// Whether what is typed is shown.
  var echoes: Bool {
    var modes = termios()
    tcgetattr(terminal, &modes)
    return modes.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Waits until `text` has been shown for the first time since the last call.
  func expect(_ text: String) throws {
    while true {
      if let range = shown.range(of: text, range: seen..<shown.endIndex) {
        seenCount = shown.utf8.distance(from: shown.startIndex, to: range.upperBound)
        return
      }
      try receive()
    }
  }

  private var seenCount = 0
  private var seen: String.Index { shown.utf8.index(shown.startIndex, offsetBy: seenCount) }

  func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(controller, bytes, bytes.count)
  }

  /// Takes in what is there, without waiting for more.
  func drain() throws {
    while try isReadable(milliseconds: 0) { try receive() }
  }

  private func receive() throws {
    try #require(try isReadable(milliseconds: 20_000), "nothing came after: \(shown)")
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(controller, &buffer, buffer.count)
    try #require(count > 0)
    shown += String(decoding: buffer[..<count], as: UTF8.self)
  }

  private func isReadable(milliseconds: Int32) throws -> Bool {
    var request = pollfd(fd: controller, events: Int16(POLLIN), revents: 0)
    return poll(&request, 1, milliseconds) > 0
  }
}

extension Tool {
  /// Starts the tool with `terminal` as its controlling terminal, and as its input and error output.
  ///
  /// - Parameter showsOutput: Whether standard output leads there, too, and not to a file.
  func start(
    _ arguments: String..., on terminal: PseudoTerminal, showsOutput: Bool = false, environment: [String: String] = [:]
  ) throws -> pid_t {
    try start(arguments, on: terminal, showsOutput: showsOutput, environment: environment)
  }

  /// The same with a list.
  func start(
    _ arguments: [String], on terminal: PseudoTerminal, showsOutput: Bool = false, environment: [String: String] = [:]
  ) throws -> pid_t {
    // The first terminal that the leader of a new session opens becomes its controlling one.
    let output = showsOutput ? terminal.path : path("terminal-out")
    return try spawn(
      arguments,
      files: [(0, terminal.path, O_RDWR), (1, output, O_WRONLY | O_CREAT), (2, terminal.path, O_RDWR)],
      environment: environment)
  }
}

/// The calls for pseudo-terminals, which glibc's headers show only to those who ask for X/Open, as Swift does not.
private enum PseudoTerminalCalls {
  typealias OnDescriptor = @convention(c) (CInt) -> CInt
  typealias Name = @convention(c) (CInt, UnsafeMutablePointer<CChar>?, Int) -> CInt

  static func posix_openpt(_ flags: CInt) -> CInt { call("posix_openpt", flags) }
  static func grantpt(_ descriptor: CInt) -> CInt { call("grantpt", descriptor) }
  static func unlockpt(_ descriptor: CInt) -> CInt { call("unlockpt", descriptor) }

  /// By `ptsname_r`: the buffer of `ptsname` is one for all threads, and tests run side by side.
  static func name(_ descriptor: CInt) -> String? {
    guard let function = dlsym(nil, "ptsname_r") else { return nil }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      let result = unsafeBitCast(function, to: Name.self)(descriptor, buffer.baseAddress, buffer.count)
      return result == 0 ? buffer.baseAddress.map { String(cString: $0) } : nil
    }
  }

  private static func call(_ name: String, _ argument: CInt) -> CInt {
    dlsym(nil, name).map { unsafeBitCast($0, to: OnDescriptor.self)(argument) } ?? -1
  }
}
