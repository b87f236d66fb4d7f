import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Runs a program, and restarts or signals it when its variables change.
final class SupervisedProgram {
  /// The program, and how to treat it.
  struct Description {
    let words: [String]
    let addsInherited: Bool
    /// The signal to send instead of restarting.
    let signal: Int32?
    let output: MaskedOutput?
  }

  /// How long to wait after the last commit before checking for changes, and the limit of that delay.
  private static let quiet = Duration.milliseconds(300)
  private static let longestWait = Duration.seconds(5)
  /// How long a program may take to end, and when to retry a store that could not be read.
  private static let patience = Duration.seconds(10)

  /// The forwarded signals, besides those that end a process.
  static let passedOn = [SIGUSR1, SIGUSR2]

  private let description: Description
  private let talking: any Talking
  /// Reads the current variables.
  private let read: () throws -> EnvironmentVariables

  private var child: pid_t = 0
  private var given: EnvironmentVariables
  /// The variables of the next instance, which starts once this one has ended.
  private var replacement: EnvironmentVariables?
  /// Whether it was asked to end from outside: no other instance is started then.
  private var isEnding = false
  private var isUnreadable = false
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

    /// Ends this process in the same way, so that its parent, such as systemd, can distinguish a signal from an exit
    /// code.
    ///
    /// - Returns: The exit code, if there was no signal, or none that ends this process.
    func takeOver() -> ExitCode {
      let number = status & 0x7f
      guard number != 0 else { return ExitCode((status >> 8) & 0xff) }
      signal(number, SIG_DFL)
      raise(number)
      return ExitCode(128 + number)
    }
  }

  /// Runs the program until it ends by itself.
  ///
  /// - Throws: ``Failure`` when it cannot be started.
  func run(_ signals: HeldSignals) throws -> End {
    try start()
    while true {
      if let end = end() {
        guard let next = replacement else {
          description.output?.finish(signals)
          return end
        }
        (given, replacement, killAt) = (next, nil, nil)
        try start()
      }
      switch signals.next(milliseconds: timeToWait) {
      case nil, SIGCHLD: break
      case HeldSignals.awakening: noteCommit()
      case let signal?: pass(signal, isThereAlready: signals.isFromKernel)
      }
      if let time = killAt, time <= .now {
        talking.detail("the program did not end within \(Self.patience) and is killed")
        kill(child, SIGKILL)
        killAt = nil
      }
      if let time = lookAt, time <= .now { look() }
    }
  }

  private var timeToWait: Int32 {
    guard let next = [lookAt, killAt].compactMap(\.self).min() else { return -1 }
    return Int32(max(0, ContinuousClock.now.duration(to: next) / .milliseconds(1))) + 1
  }

  private func start() throws {
    for secret in given.secrets where description.output?.add(secret.value) == false {
      talking.note("warning: \(secret.name), or a line of it, is too short to be masked in the output.")
    }
    let environment = given.block(addingInherited: description.addsInherited)
    child = try ProgramStart(words: description.words, environment: environment).start(output: description.output)
  }

  /// The program's end; nil while it runs.
  private func end() -> End? {
    var status: Int32 = 0
    return waitpid(child, &status, WNOHANG) == child ? End(status: status) : nil
  }

  /// - Parameter isThereAlready: Whether the program has already received the signal.
  private func pass(_ signal: Int32, isThereAlready: Bool) {
    if !isThereAlready { kill(child, signal) }
    guard [SIGTERM, SIGINT, SIGQUIT].contains(signal) else { return }
    kill(child, SIGCONT)
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
    do {
      let now = try read()
      isUnreadable = false
      take(now)
    } catch {
      lookAt = .now + Self.patience
      if !isUnreadable { talking.note("the program keeps the settings it has: \(error)") }
      isUnreadable = true
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
      kill(child, signal)
    } else {
      talking.detail("the settings of the program have changed: restarting it")
      replacement = now
      kill(child, SIGTERM)
      // A stopped process would not notice.
      kill(child, SIGCONT)
      killAt = .now + Self.patience
    }
  }
}
