#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What signals do to this process; a program that is started does not inherit handlers (execve(2)).
enum SignalHandlers {
  /// Sets the handlers of signals whose default would be wrong.
  static func set() {
    // A file that would be longer than its limit (setrlimit(2)) is an error of the write then, which removes what it has begun.
    handle(SIGXFSZ, with: { _ in })
    // The first process of a container is not ended by a signal that it does not handle (pid_namespaces(7)).
    guard getpid() == 1 else { return }
    for number in HeldSignals.ending { handle(number, with: { _exit(128 + $0) }) }
  }

  /// What the caller chose to ignore stays ignored.
  static func handle(_ number: Int32, with handler: (@convention(c) (Int32) -> Void)?) {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0, !isIgnoring(action) else { return }
    signal(number, handler)
  }

  /// Ignores `signals` during `body`, on one thread at a time unless this process ignores them anyway.
  static func ignoring<R>(_ signals: [Int32], _ body: () throws -> R) rethrows -> R {
    var previous = signals.map { number in
      var action = sigaction()
      sigaction(number, nil, &action)
      signal(number, SIG_IGN)
      return action
    }
    // With their flags, without which a handler of HeldSignals would be called with too few arguments.
    defer { for (index, number) in signals.enumerated() { sigaction(number, &previous[index], nil) } }
    return try body()
  }

  static func isIgnoring(_ action: sigaction) -> Bool {
    // SIG_IGN is the number 1 cast to a function pointer, which Swift cannot compare.
    withUnsafeBytes(of: action) { $0.loadUnaligned(as: Int.self) } == 1
  }
}
