import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Prompts on the controlling terminal, independent of standard input and output.
package enum Terminal {
  /// Whether `descriptor` is a terminal.
  package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The size of the terminal on `descriptor` in characters; nil when unknown.
  static func size(of descriptor: Int32) -> (rows: Int, columns: Int)? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_row), Int(size.ws_col))
  }

  /// Whether there is a terminal to prompt on.
  static var isThere: Bool {
    let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    close(descriptor)
    return true
  }

  // MARK: - Secrets

  /// Asks for a secret without echo.
  ///
  /// - Parameter otherwise: How else to give it, as a sentence for the error where there is no terminal.
  /// - Throws: ``Failure`` with the status `keyUnavailable` when there is no terminal, or nothing was entered.
  package static func secret(_ prompt: String, otherwise: String? = nil) throws -> SecretBytes {
    // Nonblocking: the read returns between lines, so that signals are noticed (see HiddenInput).
    let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw Failure(
        .keyUnavailable, "there is no terminal to ask for a secret." + (otherwise.map { " \($0)" } ?? ""))
    }
    defer { close(descriptor) }
    return try FileDescriptor.secret(capacity: 4 << 10) { buffer in
      var input = HiddenInput(descriptor: descriptor, prompt: prompt)
      let count = try input.readLine(into: buffer)
      guard count > 0 else { throw Failure(.keyUnavailable, "nothing was entered.") }
      return count
    }
  }

  /// Asks for a new secret twice, so that a typo does not lock anything for good.
  static func newSecret(_ prompt: String, otherwise: String) throws -> SecretBytes {
    let first = try secret(prompt, otherwise: otherwise)
    let second = try secret("The same again: ")
    guard first.isEqual(to: second) else {
      throw Failure(.keyUnavailable, "the two entries differ; nothing was changed.")
    }
    return first
  }

  // MARK: - Confirmation

  /// Asks a yes-or-no question; nil when there is no terminal.
  ///
  /// - Parameter signals: The held signals; one that comes ends the question.
  static func confirm(_ question: String, _ signals: HeldSignals? = nil) throws -> Bool? {
    let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let shown = DisplayText.escapingControls(question)
    try FileDescriptor.writeAll(Array("\(shown) [y/N] ".utf8), to: descriptor, named: "/dev/tty")
    var answer: [UInt8] = []
    var byte: UInt8 = 0
    repeat {
      try signals?.awaitInput(descriptor)
      guard read(descriptor, &byte, 1) == 1, byte != UInt8(ascii: "\n") else { break }
      answer.append(byte)
    } while answer.count < 64
    return ["y", "yes"].contains(String(decoding: answer, as: UTF8.self).lowercased())
  }
}

/// One line from a terminal with echo off.
///
/// The terminal's modes must be restored whatever ends the wait. A signal handler may do next to nothing, and Swift
/// code in one even less, so signals are blocked while echo is off, and polled in a loop. When one is pending, the
/// modes are restored, and the signal is let through to end the process, or stop it. After a stop the question is
/// asked again.
private struct HiddenInput {
  let descriptor: Int32
  let prompt: String

  private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]
  /// The number of retries when the terminal accepts no output, as after Control-S: five seconds in all.
  private static let showAttempts = 250

  private enum End {
    case line(Int)
    case signal
  }

  init(descriptor: Int32, prompt: String) {
    self.descriptor = descriptor
    self.prompt = prompt
  }

  /// Returns the length of the line, without its newline.
  mutating func readLine(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      if case .line(let count) = try attempt(into: buffer) { return count }
    }
  }

  private func attempt(into buffer: UnsafeMutableRawBufferPointer) throws -> End {
    var blocked = sigset_t()
    var previous = sigset_t()
    sigemptyset(&blocked)
    for signal in Self.signals { sigaddset(&blocked, signal) }
    pthread_sigmask(SIG_BLOCK, &blocked, &previous)
    // Last, with the modes restored: a pending signal is delivered here.
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }

    var modes = termios()
    guard tcgetattr(descriptor, &modes) == 0 else { throw Failure.system("/dev/tty", errno: errno) }
    var hidden = modes
    hidden.c_lflag &= ~tcflag_t(ECHO)
    hidden.c_lflag |= tcflag_t(ICANON | ISIG)
    try setModes(hidden)
    defer {
      try? setModes(modes)
      // The typed newline was not echoed.
      show("\n")
    }
    show(prompt)
    // Skip signals that were blocked before: other code waits for them, and here they would stay pending forever.
    let awaited = Self.signals.filter { sigismember(&previous, $0) == 0 }
    return try wait(into: buffer, awaited)
  }

  private func wait(into buffer: UnsafeMutableRawBufferPointer, _ awaited: [Int32]) throws -> End {
    var count = 0
    while count < buffer.count {
      if isPending(awaited) { return .signal }
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
      let result = read(descriptor, part.baseAddress, part.count)
      let code = errno
      if result > 0 {
        if let end = part[..<result].firstIndex(of: UInt8(ascii: "\n")) { return .line(count + end) }
        count += result
      } else if result == 0 {
        return .line(count)
      } else if code == EAGAIN || code == EINTR {
        pause()
      } else {
        throw Failure(.keyUnavailable, "the terminal is gone: \(Failure.systemMessage(code)).")
      }
    }
    throw Failure(.keyUnavailable, "the line is longer than a terminal can take.")
  }

  private func isPending(_ signals: [Int32]) -> Bool {
    var pending = sigset_t()
    guard sigpending(&pending) == 0 else { return false }
    return signals.contains { sigismember(&pending, $0) == 1 }
  }

  private func pause() {
    var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
    nanosleep(&time, nil)
  }

  private func setModes(_ modes: termios) throws {
    var modes = modes
    // TCSAFLUSH drops type-ahead, which may have been meant for another question.
    while tcsetattr(descriptor, TCSAFLUSH, &modes) != 0 {
      let code = errno
      guard code == EINTR else { throw Failure.system("/dev/tty", errno: code) }
    }
  }

  private func show(_ text: String) {
    var rest = Array(text.utf8)[...]
    for _ in 0..<Self.showAttempts where !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else { pause() }
    }
  }
}
