import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Signals that end a process, held back while there is something that must not outlive it.
///
/// A handler may do next to nothing, and so puts the signal's number into a pipe. Whoever holds the signals looks there, and
/// what has come strikes when they are let go. Signals that the caller ignores stay ignored.
final class HeldSignals {
  static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  /// The end of the pipe that the handler writes to; of one holder at a time.
  private static let writer = Atomic<Int32>(-1)

  /// In the pipe, what marks a signal that the kernel sent.
  private static let kernelBit: UInt8 = 0x80

  private let descriptors: (read: Int32, write: Int32)
  private var previous: [(signal: Int32, action: sigaction)] = []
  /// What will strike when the signals are let go.
  private var received: Int32?

  /// Whether the last signal that ``next(milliseconds:)`` returned came from the kernel, as one for a key of the terminal
  /// does: all programs in the foreground have got it.
  private(set) var isFromKernel = false

  /// Holds the signals back while `body` works.
  ///
  /// - Parameter others: Signals besides those that end a process.
  static func during<R>(and others: [Int32] = [], _ body: (HeldSignals) throws -> R) throws -> R {
    let signals = try HeldSignals(others)
    defer { signals.release() }
    return try body(signals)
  }

  private init(_ others: [Int32]) throws {
    var pair: [Int32] = [-1, -1]
    guard pipe(&pair) == 0 else { throw Failure.system("a pipe", errno: errno) }
    descriptors = (pair[0], pair[1])
    for descriptor in pair {
      FileDescriptor.closeOnExecution(descriptor)
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }
    Self.writer.store(descriptors.write, ordering: .relaxed)
    for signal in Self.ending + others + [SIGCHLD] { hold(signal) }
  }

  private func hold(_ signal: Int32) {
    var old = sigaction()
    guard sigaction(signal, nil, &old) == 0, signal == SIGCHLD || !Hardening.isIgnoring(old) else { return }
    var action = sigaction()
    #if canImport(Darwin)
      action.__sigaction_u.__sa_sigaction = Self.handler
    #else
      action.__sigaction_handler.sa_sigaction = Self.handler
    #endif
    action.sa_flags = SA_SIGINFO
    if sigaction(signal, &action, nil) == 0 { previous.append((signal, old)) }
  }

  private static let handler:
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void =
      { signal, information, _ in
        let code = errno
        HeldSignals.put(UInt8(truncatingIfNeeded: signal) | (HeldSignals.isFromKernel(information) ? kernelBit : 0))
        errno = code
      }

  private static func isFromKernel(_ information: UnsafeMutablePointer<siginfo_t>?) -> Bool {
    #if canImport(Darwin)
      // There the code does not tell; a signal to the program in the foreground is taken for one of the terminal.
      tcgetpgrp(2) == getpgrp()
    #else
      (information?.pointee.si_code ?? 0) > 0
    #endif
  }

  private static func put(_ byte: UInt8) {
    var byte = byte
    _ = write(writer.load(ordering: .relaxed), &byte, 1)
  }

  /// What ``next(milliseconds:)`` returns after ``awaken()``; no signal has this number.
  static let awakening: Int32 = 0

  /// Ends the waiting of whoever holds the signals, from any thread.
  static func awaken() { put(UInt8(awakening)) }

  private func release() {
    while let signal = next(milliseconds: 0) { note(signal) }
    for (signal, action) in previous {
      var action = action
      sigaction(signal, &action, nil)
    }
    Self.writer.store(-1, ordering: .relaxed)
    close(descriptors.read)
    close(descriptors.write)
    if let received { raise(received) }
  }

  // MARK: - Looking

  /// The next signal, `SIGCHLD` among them; nil when none comes in that time.
  ///
  /// - Parameter milliseconds: How long to wait; -1 stands for ever.
  func next(milliseconds: Int32) -> Int32? {
    var request = pollfd(fd: descriptors.read, events: Int16(POLLIN), revents: 0)
    while poll(&request, 1, milliseconds) < 0, errno == EINTR {}
    var byte: UInt8 = 0
    guard read(descriptors.read, &byte, 1) == 1 else { return nil }
    isFromKernel = byte & Self.kernelBit != 0
    return Int32(byte & ~Self.kernelBit)
  }

  /// Waits until there is something to read from `descriptor`.
  ///
  /// - Throws: ``Failure`` when a signal comes first.
  func awaitInput(_ descriptor: Int32) throws {
    while true {
      // A signal that came just before would not interrupt a read; its byte in the pipe is still there.
      try check()
      var requests = [descriptor, descriptors.read].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      if poll(&requests, 2, -1) > 0, requests[0].revents != 0 { return }
    }
  }

  /// Lets `signal` strike later, if it is one that ends.
  func note(_ signal: Int32) {
    if received == nil, Self.ending.contains(signal) { received = signal }
  }

  /// - Throws: ``Failure`` when a signal has come, so that all is put in order before it strikes.
  func check() throws {
    while let signal = next(milliseconds: 0) { note(signal) }
    if received != nil { throw Failure(.other, "a signal came.") }
  }
}
