import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// A program whose standard output is the key (`PREFS_KEY_COMMAND`).
enum KeyCommand {
  /// Runs `command` with `/bin/sh -c` and returns what it prints, straight into protected memory.
  ///
  /// The command keeps standard input and standard error, so that it can ask and complain.
  ///
  /// - Throws: ``Failure`` with the status `keyUnavailable` when it cannot be run, fails, or prints nothing.
  static func key(from command: String) throws -> SecretBytes {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Failure.system("pipe", errno: errno) }
    let (readEnd, writeEnd) = (ends[0], ends[1])
    closeOnExec(readEnd)
    closeOnExec(writeEnd)

    let child: pid_t
    do {
      child = try spawn(command, output: writeEnd)
    } catch {
      close(readEnd)
      close(writeEnd)
      throw error
    }
    // A reader sees the end only when no writer is left.
    close(writeEnd)
    let key = Result {
      try FileDescriptor.readSecret(readEnd, named: "the output of PREFS_KEY_COMMAND", droppingNewline: false)
    }
    // Before the wait: a command that prints more than was read must find out, not stand and wait as well.
    close(readEnd)
    try checkEnd(of: child)
    return try key.get()
  }

  private static func spawn(_ command: String, output: Int32) throws -> pid_t {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, 1)

    var arguments: [UnsafeMutablePointer<CChar>?] = ["sh", "-c", command].map { (word: String) in strdup(word) }
    arguments.append(nil)
    defer { for argument in arguments { free(argument) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, "/bin/sh", &actions, nil, arguments, environ)
    guard code == 0 else {
      throw Failure(.keyUnavailable, "PREFS_KEY_COMMAND could not be run: \(Failure.systemMessage(code)).")
    }
    return child
  }

  private static func checkEnd(of child: pid_t) throws {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 {
      let code = errno
      guard code == EINTR else {
        throw Failure(.keyUnavailable, "PREFS_KEY_COMMAND was lost: \(Failure.systemMessage(code)).")
      }
    }
    // The macros WIFEXITED, WEXITSTATUS and WTERMSIG, which Swift does not import.
    let signal = status & 0x7f
    let exitCode = (status >> 8) & 0xff
    if signal != 0 { throw Failure(.keyUnavailable, "PREFS_KEY_COMMAND was ended by signal \(signal).") }
    if exitCode != 0 { throw Failure(.keyUnavailable, "PREFS_KEY_COMMAND failed with exit code \(exitCode).") }
  }

  private static func closeOnExec(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }
}
