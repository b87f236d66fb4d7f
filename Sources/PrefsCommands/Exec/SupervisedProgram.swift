import ArgumentParser
import CSystemCalls
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Runs a program in a process group of its own, and restarts or signals it when its variables change.
///
/// It does what the first process of a container must do: it waits for orphans, and passes on signals.
final class SupervisedProgram {
  /// The program, and how to treat it.
  struct Description {
    let words: [String]
    let addsInherited: Bool
    /// The signal to send instead of restarting.
    let signal: Int32?
    let output: MaskedOutput?
    /// Whether to end what the program leaves behind in its process group.
    let endsGroup: Bool
  }

  /// How long to wait after the last commit before checking for changes, and the limit of that delay.
  private static let quiet = Duration.milliseconds(300)
  private static let longestWait = Duration.seconds(5)
  /// How long a program may take to end, and when to retry a store that could not be read.
  private static let patience = Duration.seconds(10)

  /// How often to look whether a process group is empty, where orphans are adopted by another process.
  private static let interval = Duration.milliseconds(100)

  /// The forwarded signals: all but those that cannot be caught, that report a fault or a child of this process, and that stop
  /// it for using the terminal in the background.
  static let passedOn: [Int32] = {
    let own = [
      SIGKILL, SIGSTOP, SIGCHLD, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGTTIN, SIGTTOU,
    ]
    #if os(Linux)
      // With the real-time signals.
      let last: Int32 = 64
    #else
      let last: Int32 = 31
    #endif
    return (1...last).filter { !own.contains($0) }
  }()

  private let description: Description
  private let talking: any Talking
  /// Reads the current variables.
  private let read: () throws -> EnvironmentVariables

  /// The terminal, if the program runs in its foreground.
  private let terminal = LentTerminal()

  /// The program, which leads its process group.
  private var child: pid_t = 0
  /// How it ended, as of waitpid(2); nil while it runs.
  private var status: Int32?
  private var given: EnvironmentVariables
  /// The variables of the next instance, which starts once this one has ended.
  private var replacement: EnvironmentVariables?
  /// Whether it was asked to end from outside: no other instance is started then.
  private var isEnding = false
  /// Whether the whole process group got SIGTERM; a second one might cut its end short.
  private var isToldToEnd = false
  /// Why the settings cannot be read, as it was said; nil if they can.
  private var problem: String?
  private var firstCommit: ContinuousClock.Instant?
  private var lookAt: ContinuousClock.Instant?
  private var killAt: ContinuousClock.Instant?

  init(
    _ description: Description, _ talking: any Talking, read: @escaping () throws -> EnvironmentVariables
  ) throws {
    (self.description, self.talking, self.read) = (description, talking, read)
    given = try read()
  }

  /// How a program ended.
  struct End {
    /// The status from waitpid(2).
    let status: Int32
    /// Whether it had the terminal of this process's group.
    let hadTerminal: Bool
    /// Whether output of it was lost here, of which it does not know.
    let hasLostOutput: Bool

    /// Ends this process in the same way, so that its parent, such as systemd, can distinguish a signal from an exit
    /// code.
    ///
    /// - Returns: The exit code, if there was no signal, or none that ends this process.
    func takeOver() -> ExitCode {
      let number = status & 0x7f
      guard number != 0 else {
        let code = (status >> 8) & 0xff
        return ExitCode(code == 0 && hasLostOutput ? ExitStatus.execFailed.rawValue : code)
      }
      signal(number, SIG_DFL)
      // A key that interrupts the program is meant for the script around it, too.
      if hadTerminal, [SIGINT, SIGQUIT].contains(number) { kill(0, number) }
      raise(number)
      return ExitCode(128 + number)
    }
  }

  /// Runs the program until it ends by itself.
  ///
  /// - Throws: ``Failure`` when it cannot be started.
  func run(_ signals: HeldSignals) throws -> End {
    defer { terminal?.takeBack() }
    #if os(Linux)
      // As the first process of a container would: what a wrapper leaves behind is waited for here.
      _ = coffer_adopt_orphans()
    #endif
    try start()
    while true {
      wait(signals)
      if let status, isGroupAtEnd() {
        guard let next = replacement else {
          description.output?.finish(signals)
          return End(
            status: status, hadTerminal: terminal != nil, hasLostOutput: description.output?.isLost ?? false)
        }
        (given, replacement, killAt) = (next, nil, nil)
        try start()
      }
      switch signals.next(milliseconds: timeToWait) {
      case nil, SIGCHLD: break
      case HeldSignals.awakening: noteCommit()
      case let signal?: pass(signal)
      }
      if let time = killAt, time <= .now {
        talking.detail("the program did not end within \(Self.patience) and is killed")
        kill(-child, SIGKILL)
        killAt = nil
      }
      if let time = lookAt, time <= .now { look() }
    }
  }

  private var timeToWait: Int32 {
    let poll = status == nil ? nil : ContinuousClock.now + Self.interval
    guard let next = [lookAt, killAt, poll].compactMap(\.self).min() else { return -1 }
    return Int32(max(0, ContinuousClock.now.duration(to: next) / .milliseconds(1))) + 1
  }

  private func start() throws {
    for secret in given.secrets where description.output?.add(secret.value) == false {
      talking.note("warning: \(secret.name), or a line of it, is too short to be masked in the output.")
    }
    let environment = given.block(addingInherited: description.addsInherited)
    terminal?.takeBack()
    (status, isToldToEnd) = (nil, false)
    child = try ProgramStart(words: description.words, environment: environment)
      .start(output: description.output, terminal: terminal?.descriptor)
    terminal?.isTaken(by: child)
  }

  /// Takes the ends of the program and of orphans.
  private func wait(_ signals: HeldSignals) {
    if status == nil { waitForProgram(signals) }
    OwnChildren.unlessThereAreAny {
      var status: Int32 = 0
      while true {
        let process = waitpid(-1, &status, WNOHANG)
        guard process > 0 else { return }
        if process == child { self.status = status }
      }
    }
  }

  private func waitForProgram(_ signals: HeldSignals) {
    var status: Int32 = 0
    guard waitpid(child, &status, WNOHANG | WUNTRACED) == child else { return }
    guard status & 0xff == 0x7f else { return self.status = status }
    // A program that a key has stopped, or that waits for the terminal, stops this process, too, so that the shell says so.
    let signal = (status >> 8) & 0xff
    guard [SIGTSTP, SIGTTIN, SIGTTOU].contains(signal) else { return }
    terminal?.takeBack()
    signals.stop(group: terminal != nil)
    // `SIGCONT` continues the program; without a shell that sends it, a key does not stop anything.
    if signal == SIGTSTP { resume() }
  }

  private func resume() {
    terminal?.lend(to: child)
    kill(-child, SIGCONT)
  }

  /// Whether nothing of the program is left that has to end; asks the rest to end.
  private func isGroupAtEnd() -> Bool {
    guard description.endsGroup, kill(-child, 0) == 0 else { return true }
    guard !isToldToEnd else { return false }
    talking.detail("the program has ended and left others behind: ending them")
    terminate()
    return false
  }

  /// Asks the program and all that it started in its group to end, and has them killed after a while.
  private func terminate() {
    kill(-child, SIGTERM)
    // A stopped process would not notice.
    kill(-child, SIGCONT)
    (isToldToEnd, killAt) = (true, .now + Self.patience)
  }

  private func pass(_ signal: Int32) {
    if signal == SIGCONT { return resume() }
    kill(-child, signal)
    if signal == SIGTERM { isToldToEnd = true }
    guard [SIGTERM, SIGINT, SIGQUIT].contains(signal) else { return }
    kill(-child, SIGCONT)
    // The sender of the signal now decides how long it may take to end.
    (isEnding, replacement, killAt, lookAt) = (true, nil, nil, nil)
  }

  // MARK: - Changes

  private func noteCommit() {
    guard !isEnding else { return }
    let first = firstCommit ?? .now
    firstCommit = first
    lookAt = min(.now + Self.quiet, first + Self.longestWait)
  }

  private func look() {
    (lookAt, firstCommit) = (nil, nil)
    // One that has ended by itself is not started again, while the rest of its group ends.
    guard status == nil || replacement != nil else { return }
    do {
      let now = try read()
      problem = nil
      take(now)
    } catch {
      lookAt = .now + Self.patience
      if problem != "\(error)" { talking.note("the program keeps the settings it has: \(error)") }
      problem = "\(error)"
    }
  }

  private func take(_ now: EnvironmentVariables) {
    if replacement != nil {
      replacement = now
    } else if now == given {
      talking.detail("no setting of the program has changed")
    } else if let signal = description.signal {
      talking.detail("the settings of the program have changed: sending signal \(signal)")
      given = now
      kill(-child, signal)
    } else {
      talking.detail("the settings of the program have changed: restarting it")
      replacement = now
      terminate()
    }
  }
}
