#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What the process does to keep secrets out of files it does not write itself.
package enum Hardening {
  /// Lets signals of a crash, and SIGQUIT, do what the system does with them.
  ///
  /// On a terminal the Swift runtime catches them to print a backtrace with registers and memory, which may hold a key;
  /// SIGQUIT it then swallows.
  package static func turnOffBacktraces() {
    for signal in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
      var action = sigaction()
      guard sigaction(signal, nil, &action) == 0 else { continue }
      // What the caller chose to ignore stays ignored.
      if isIgnoring(action) { continue }
      action = sigaction()
      sigaction(signal, &action, nil)
    }
  }

  static func isIgnoring(_ action: sigaction) -> Bool {
    // SIG_IGN is the number 1 in the place of a function, which Swift cannot compare.
    withUnsafeBytes(of: action) { $0.loadUnaligned(as: Int.self) } == 1
  }
}
