#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Measures that keep secrets out of files that the process does not write itself.
package enum Hardening {
  /// Restores the system's default handling of crash signals and SIGQUIT.
  ///
  /// On a terminal the Swift runtime catches them to print a backtrace with registers and memory, which may contain a
  /// key; it also swallows SIGQUIT.
  package static func turnOffBacktraces() {
    for signal in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
      var action = sigaction()
      guard sigaction(signal, nil, &action) == 0 else { continue }
      // Signals that the caller chose to ignore stay ignored.
      if isIgnoring(action) { continue }
      action = sigaction()
      sigaction(signal, &action, nil)
    }
  }

  static func isIgnoring(_ action: sigaction) -> Bool {
    // SIG_IGN is the number 1 cast to a function pointer, which Swift cannot compare.
    withUnsafeBytes(of: action) { $0.loadUnaligned(as: Int.self) } == 1
  }
}
