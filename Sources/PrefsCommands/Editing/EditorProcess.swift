#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Runs the user's editor on a file.
enum EditorProcess {
  /// The command line of the editor: `$VISUAL`, `$EDITOR`, or vi.
  static var command: String {
    Environment.variable("VISUAL") ?? Environment.variable("EDITOR") ?? "vi"
  }

  /// How long an editor may take to exit after a signal, in milliseconds.
  private static let patience: Int32 = 2_000

  /// Runs the editor on the file at `path`, and waits for it.
  ///
  /// Meanwhile Control-C and Control-\ go to the editor alone. SIGTERM and SIGHUP end it, too.
  ///
  /// - Throws: ``Failure`` when the editor could not be started, failed, or a signal came.
  static func run(on path: String, _ signals: HeldSignals) throws {
    try signals.check()
    let child = try start(path)
    while true {
      if let status = status(of: child) {
        guard status != 0 else { return }
        let end = status & 0x7f == 0 ? "failed with exit code \(status >> 8)" : "was ended by signal \(status & 0x7f)"
        throw Failure(.other, "the editor \(command) \(end); nothing was changed.")
      }
      guard let signal = signals.next(milliseconds: -1), [SIGTERM, SIGHUP].contains(signal) else { continue }
      kill(child, signal)
      // Give it time to remove its own files.
      while status(of: child) == nil, signals.next(milliseconds: patience) != nil {}
      signals.note(signal)
      try signals.check()
    }
  }

  private static func start(_ path: String) throws -> pid_t {
    // The shell splits the command into words; the path is a separate argument.
    try ChildProcess.start("/bin/sh", ["/bin/sh", "-c", "\(command) \"$@\"", command, path])
  }

  /// The child's exit status; nil while it runs.
  private static func status(of child: pid_t) -> Int32? {
    var status: Int32 = 0
    let result = waitpid(child, &status, WNOHANG)
    return result == 0 ? nil : result == child ? status : 0xff00
  }
}
