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
      SignalHandlers.handle(signal, with: SIG_DFL)
    }
  }
}
