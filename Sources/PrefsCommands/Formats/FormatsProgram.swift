import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The program `prefs-formats`, which parses YAML and TOML for `prefs`.
///
/// The parsers depend on all of Foundation: 45 MB, and a millisecond or more of every start. And if one crashes, it
/// cannot affect an open store. The text is passed through a pipe, and the result comes back through another as
/// ``TreeBytes``.
package enum FormatsProgram {
  static let name = "formats"

  /// The first byte of an answer.
  package enum Answer: UInt8 {
    case tree = 1
    case problem = 2
  }

  /// Parses a file into a tree.
  ///
  /// - Throws: ``FormatProblem``; ``Failure`` when the program is missing or failed.
  static func tree(_ text: String, _ format: SettingsFormat) throws -> Value {
    let program = try find(for: format)
    let (answer, status) = try run(program.path, format.rawValue, text)
    guard status == 0, let first = answer.first, let kind = Answer(rawValue: first) else {
      let signal = status & 0x7f
      let end = signal == 0 ? "exit code \(status >> 8 & 0xff)" : "signal \(signal)"
      throw FormatProblem("the reader for \(format.rawValue) failed with \(end)")
    }
    switch kind {
    case .tree: return try TreeBytes.tree(answer.dropFirst())
    case .problem: throw FormatProblem(String(decoding: answer.dropFirst(), as: UTF8.self))
    }
  }

  /// Finds the program and checks that it may be run.
  ///
  /// - Throws: ``Failure`` when it is missing, or others may write to it.
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
        // A crashing parser may print parts of its input.
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
      }
    } catch {
      input.closeWriting()
      throw error
    }
    // The program reads all input before it answers, or has exited.
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
