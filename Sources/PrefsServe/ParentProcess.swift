import CSystemCalls
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The process that has started this one.
enum ParentProcess {
  private static let id = Atomic<pid_t>(0)

  /// Ends this process when its parent ends, even if another process keeps its standard input open.
  ///
  /// The kernel also sends the signal when only the thread has ended that started this process; then it means nothing.
  static func endTogether() {
    #if os(Linux)
      // The first process of a container has no parent there.
      guard getpid() != 1 else { return }
      id.store(getppid(), ordering: .relaxed)
      signal(SIGHUP) { _ in if getppid() != ParentProcess.id.load(ordering: .relaxed) { _exit(0) } }
      _ = coffer_signal_at_parents_end(SIGHUP)
    #endif
  }
}
