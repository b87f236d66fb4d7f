import CSystemCalls
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A program that will replace this one, or run beside it.
struct ProgramStart {
  /// Its name or path, and its arguments.
  let words: [String]
  /// Entries `NAME=value`.
  let environment: [[UInt8]]

  /// Executes the program; returns only on failure.
  ///
  /// A name without a slash is looked up in this process's `PATH`, because the settings are for the program alone.
  func replaceProcess() -> Failure {
    CoreLimit.restore()
    return attempt { execve($0, $1, $2) == 0 ? 0 : errno }
  }

  /// Starts the program beside this one, in a process group of its own.
  ///
  /// On Linux the kernel kills it if this process ends first.
  ///
  /// - Parameters:
  ///   - output: The destination of its output; nil to inherit this process's.
  ///   - terminal: The terminal to bring it to the foreground of; nil for none.
  func start(output: MaskedOutput?, terminal: Int32?) throws -> pid_t {
    CoreLimit.restore()
    // On Linux this process writes no core dump meanwhile: it stays undumpable (prctl(2)).
    defer { try? CoreDumps.disable() }
    let descriptors = output?.redirections ?? []
    var child: pid_t = 0
    let failure = attempt { path, arguments, variables in
      coffer_start_program(
        &child, path, arguments, variables, descriptors.flatMap { [$0.from, $0.to] }, Int32(descriptors.count),
        terminal ?? -1)
    }
    guard child > 0 else { throw failure }
    return child
  }

  /// - Parameter run: Executes a path with arguments and variables, and returns the error code.
  private func attempt(
    _ run: (String, [UnsafeMutablePointer<CChar>?], [UnsafeMutablePointer<CChar>?]) -> Int32
  ) -> Failure {
    let arguments = CStringList(words.map(CommandArguments.bytes))
    let variables = CStringList(environment)
    let name = words.first ?? ""
    var code = ENOENT
    var missingLoader: Failure?
    for path in ChildProcess.candidates(name) {
      let result = run(path, arguments.pointers, variables.pointers)
      if result == 0 { break }
      missingLoader = missingLoader ?? ChildProcess.missingLoader(of: path, errno: result)
      // A file that may not be executed does not hide a later one in `PATH` (execvp(3)).
      if result != ENOENT, result != ENOTDIR { code = result }
      if ![ENOENT, ENOTDIR, EACCES].contains(code) { break }
    }
    if code == ENOENT, let missingLoader { return missingLoader }
    let reason = "\(name): \(Failure.systemMessage(code))."
    return Failure(code == ENOENT ? .commandNotFound : .notExecutable, reason)
  }
}
