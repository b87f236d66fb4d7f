import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The program `prefs-formats`, which reads YAML and TOML for `prefs`.
///
/// Their parsers bring all of Foundation: 45 MB, and a millisecond or more of every start. And one that crashes takes no
/// open store with it. Text goes in by a pipe, and a ``TreeBytes`` comes back by another.
package enum FormatsProgram {
  static let name = "formats"

  /// How an answer begins.
  package enum Answer: UInt8 {
    case tree = 1
    case problem = 2
  }

  /// The tree that a file holds.
  ///
  /// - Throws: ``FormatProblem``; ``Failure`` when the program is not there, or did not do its work.
  static func tree(_ text: String, _ format: SettingsFormat) throws -> Value {
    let program = try find(for: format)
    let (answer, status) = try run(program.path, format.rawValue, text)
    guard status == 0, let first = answer.first, let kind = Answer(rawValue: first) else {
      let signal = status & 0x7f
      let end = signal == 0 ? "exit code \(status >> 8 & 0xff)" : "signal \(signal)"
      throw FormatProblem("what reads \(format.rawValue) could not take it, and ended with \(end)")
    }
    switch kind {
    case .tree: return try TreeBytes.tree(answer.dropFirst())
    case .problem: throw FormatProblem(String(decoding: answer.dropFirst(), as: UTF8.self))
    }
  }

  /// The program, which may be run.
  ///
  /// - Throws: ``Failure`` when it is not there, or others may write to it.
  static func find(for format: SettingsFormat) throws -> ProgramBeside {
    guard let program = ProgramBeside(named: name) else {
      throw Failure(
        .other, "the program prefs-\(name), which reads \(format.rawValue), is missing. Install prefs again.")
    }
    try program.check()
    return program
  }

  private static func run(_ path: String, _ format: String, _ text: String) throws -> (answer: [UInt8], status: Int32) {
    let (input, output) = (try PipePair(), try PipePair())
    defer { output.closeReading() }
    let child: pid_t
    do {
      defer {
        input.closeReading()
        output.closeWriting()
      }
      child = try ChildProcess.start(path, ["prefs-\(name)", format]) { actions, _ in
        posix_spawn_file_actions_adddup2(&actions, input.reading, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writing, 1)
        // A parser that gives up may quote what it read.
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
      }
    } catch {
      input.closeWriting()
      throw error
    }
    // It reads to the end before it answers, or has ended.
    let previous = signal(SIGPIPE, SIG_IGN)
    do { try FileDescriptor.writeAll(text.utf8, to: input.writing, named: path) } catch is ClosedPipe {}
    signal(SIGPIPE, previous)
    input.closeWriting()
    let answer = try FileDescriptor.readAll(output.reading, named: path)
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 {
      guard errno == EINTR else { throw Failure.system(path, errno: errno) }
    }
    return (answer, status)
  }
}
