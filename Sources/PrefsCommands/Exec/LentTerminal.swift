#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The terminal of a command in the foreground, lent to the process group of the program that it runs: only a group in the
/// foreground can read keys, and gets the signals of Ctrl-C and Ctrl-Z.
final class LentTerminal {
  let descriptor: Int32 = 0
  private let own = getpgrp()
  private var borrower: pid_t?

  /// Nil unless this process is in the foreground of the terminal that is its input.
  ///
  /// In a pipeline, too: a program more often reads keys than what its output is piped to.
  init?() {
    guard isatty(0) == 1, tcgetpgrp(descriptor) == own else { return nil }
  }

  /// Notes that a new process group has taken the terminal.
  func isTaken(by group: pid_t) { borrower = group }

  /// Lends it to the group again, if this process is in the foreground: after `fg`, not after `bg`.
  func lend(to group: pid_t) {
    guard tcgetpgrp(descriptor) == own else { return }
    setForeground(group)
    borrower = group
  }

  /// Brings this process's group to the foreground again.
  func takeBack() {
    if let borrower, tcgetpgrp(descriptor) == borrower { setForeground(own) }
    borrower = nil
  }

  private func setForeground(_ group: pid_t) {
    // SIGTTOU would stop a process in the background for this, unless it is blocked.
    var (signals, previous) = (sigset_t(), sigset_t())
    sigemptyset(&signals)
    sigaddset(&signals, SIGTTOU)
    pthread_sigmask(SIG_BLOCK, &signals, &previous)
    tcsetpgrp(descriptor, group)
    pthread_sigmask(SIG_SETMASK, &previous, nil)
  }
}
