import CSystemCalls
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Holds back signals that end a process while something must be cleaned up first.
///
/// A handler may do next to nothing, so it only writes the signal's number to a pipe. The holder reads the pipe, and
/// received signals are raised again at the end. Signals that the caller ignores stay ignored. A pipe without a reader is an error of
/// the write meanwhile.
final class HeldSignals {
  static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  /// The write end of the pipe; one holder at a time.
  private static let writer = Atomic<Int32>(-1)

  private let descriptors: (read: Int32, write: Int32)
  private var previous: [(signal: Int32, action: sigaction)] = []
  /// The signal to raise at the end.
  private var received: Int32?

  /// Holds signals back during `body`.
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
    for signal in Set(Self.ending + others + [SIGCHLD, SIGPIPE]) { hold(signal) }
  }

  private func hold(_ signal: Int32) {
    var old = sigaction()
    guard sigaction(signal, nil, &old) == 0, signal == SIGCHLD || !SignalHandlers.isIgnoring(old) else { return }
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
        // A pipe without a reader makes this process send itself SIGPIPE, which is for no one else. Nothing generic here: its types are made
        // when they are first used, with memory that the interrupted thread may be asking for.
        let isOwn = signal == SIGPIPE && coffer_sender(information) == getpid()
        if !isOwn { HeldSignals.put(UInt8(truncatingIfNeeded: signal)) }
        errno = code
      }

  private static func put(_ byte: UInt8) {
    var byte = byte
    _ = write(writer.load(ordering: .relaxed), &byte, 1)
  }

  /// What ``next(milliseconds:)`` returns after ``awaken()``; no signal has this number.
  static let awakening: Int32 = 0

  /// Wakes the holder, from any thread.
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

  /// Stops this process, or its whole group, as Ctrl-Z does without a handler; returns when it continues, or at once if there
  /// is no shell to continue it.
  func stop(group: Bool) {
    var (byDefault, previous) = (sigaction(), sigaction())
    sigaction(SIGTSTP, &byDefault, &previous)
    kill(group ? 0 : getpid(), SIGTSTP)
    sigaction(SIGTSTP, &previous, nil)
  }

  // MARK: - Looking

  /// The next signal, including `SIGCHLD`; nil on timeout.
  ///
  /// - Parameter milliseconds: The timeout; -1 for none.
  func next(milliseconds: Int32) -> Int32? {
    var request = pollfd(fd: descriptors.read, events: Int16(POLLIN), revents: 0)
    while poll(&request, 1, milliseconds) < 0, errno == EINTR {}
    var byte: UInt8 = 0
    guard read(descriptors.read, &byte, 1) == 1 else { return nil }
    return Int32(byte)
  }

  /// Waits until `descriptor` is readable.
  ///
  /// - Throws: ``Failure`` when a signal comes first.
  func awaitInput(_ descriptor: Int32) throws {
    while true {
      // A signal just before would not interrupt a read, but its byte is still in the pipe.
      try check()
      var requests = [descriptor, descriptors.read].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      if poll(&requests, 2, -1) > 0, requests[0].revents != 0 { return }
    }
  }

  /// Raises `signal` at the end, if it is one that ends a process.
  func note(_ signal: Int32) {
    if received == nil, Self.ending.contains(signal) { received = signal }
  }

  /// - Throws: ``Failure`` when a signal has come, so that everything is cleaned up first.
  func check() throws {
    while let signal = next(milliseconds: 0) { note(signal) }
    if received != nil { throw Failure(.other, "interrupted by a signal.") }
  }
}
