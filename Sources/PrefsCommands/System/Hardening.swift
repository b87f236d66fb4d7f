#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What the process does to keep secrets out of files it does not write itself.
enum Hardening {
  /// Turns core dumps off; on Linux also access through `/proc` and debuggers of the same user.
  ///
  /// Failure is not an error: the tool works without, and keys are excluded from dumps one by one as well.
  static func turnOffCoreDumps() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    #if canImport(Glibc)
      _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    #else
      _ = setrlimit(RLIMIT_CORE, &none)
    #endif
    #if os(Linux)
      // prctl is variadic in C, and Swift imports no variadic functions. Its arguments are all integers, which the C
      // calling conventions of Linux pass alike in both forms, so the symbol is called as what it is in the kernel.
      typealias ProcessControl =
        @convention(c) (CInt, CUnsignedLong, CUnsignedLong, CUnsignedLong, CUnsignedLong) -> CInt
      guard let symbol = dlsym(nil, "prctl") else { return }
      let processControl = unsafeBitCast(symbol, to: ProcessControl.self)
      let setDumpable: CInt = 4  // PR_SET_DUMPABLE in <linux/prctl.h>
      _ = processControl(setDumpable, 0, 0, 0, 0)
    #endif
  }

  /// Lets signals of a crash, and SIGQUIT, do what the system does with them.
  ///
  /// On a terminal the Swift runtime catches them to print a backtrace with registers and memory, which may hold a key;
  /// SIGQUIT it then swallows.
  static func turnOffBacktraces() {
    for signal in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
      var action = sigaction()
      guard sigaction(signal, nil, &action) == 0 else { continue }
      // What the caller chose to ignore stays ignored.
      if isIgnoring(action) { continue }
      action = sigaction()
      sigaction(signal, &action, nil)
    }
  }

  private static func isIgnoring(_ action: sigaction) -> Bool {
    // SIG_IGN is the number 1 in the place of a function, which Swift cannot compare.
    withUnsafeBytes(of: action) { $0.loadUnaligned(as: Int.self) } == 1
  }
}
