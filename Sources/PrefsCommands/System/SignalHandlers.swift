#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Handlers of signals whose default would be wrong; a program that is started does not inherit them (execve(2)).
enum SignalHandlers {
  static func set() {
    // A file that would be longer than its limit (setrlimit(2)) is an error of the write then, which removes what it has begun.
    handle(SIGXFSZ) { _ in }
    // The first process of a container is not ended by a signal that it does not handle (pid_namespaces(7)).
    guard getpid() == 1 else { return }
    for number in HeldSignals.ending { handle(number) { _exit(128 + $0) } }
  }

  /// What the caller chose to ignore stays ignored.
  private static func handle(_ number: Int32, with handler: @escaping @convention(c) (Int32) -> Void) {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0, !Hardening.isIgnoring(action) else { return }
    signal(number, handler)
  }
}
