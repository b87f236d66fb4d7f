import CofferCrypto

/// A program whose standard output is a key.
enum KeyCommand {
  /// Far more than a key takes.
  private static let maximumByteCount = 1024

  /// Runs `command` with `/bin/sh -c` and reads its output straight into protected memory.
  ///
  /// The command inherits standard input and standard error, so it can prompt and report errors.
  ///
  /// - Throws: `StorageError.keyUnavailable` when it cannot be run, fails, prints nothing or too much, or does not
  ///   end within `limit`; in that case it is killed.
  static func output(of command: String, within limit: Duration = KeySource.timeLimit) throws -> SecretBytes {
    try OwnChildren.keeping { try run(command, within: limit) }
  }

  private static func run(_ command: String, within limit: Duration) throws -> SecretBytes {
    let deadline = ContinuousClock.now + limit
    guard !command.isEmpty, !command.utf8.contains(0) else { throw failure("is empty") }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw failure("could not be run (\(systemErrorText()))") }
    let (readEnd, writeEnd) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let child: pid_t
    do {
      child = try spawn(command, output: writeEnd)
    } catch {
      close(readEnd)
      close(writeEnd)
      throw error
    }
    // A reader sees the end only once all writers have closed.
    close(writeEnd)
    let output = Result { try read(readEnd, until: deadline) }
    // Before the wait: a command that prints more than we read must get an error instead of blocking.
    close(readEnd)
    guard let status = try wait(for: child, until: deadline) else {
      end(child)
      throw failure("did not end within \(limit) and was killed")
    }
    try check(status)
    return try output.get()
  }

  private static func failure(_ what: String) -> StorageError {
    .keyUnavailable(reason: "the key command \(what)")
  }

  private static func read(_ descriptor: Int32, until deadline: ContinuousClock.Instant) throws -> SecretBytes {
    var count = 0
    let contents = try SecretBytes(count: maximumByteCount) { buffer in
      while count < buffer.count {
        guard KeySource.waitForInput(descriptor, until: deadline) else { throw failure("took too long") }
        let result = Platform.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
        if result < 0, errno == EINTR { continue }
        guard result >= 0 else { throw failure("could not be read (\(systemErrorText()))") }
        if result == 0 { return }
        count += result
      }
      throw failure("printed more than a key")
    }
    guard count > 0 else { throw failure("printed nothing") }
    return contents.slice(0..<count)
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
    guard code == 0 else { throw failure("could not be run (\(systemErrorText(code)))") }
    return child
  }

  /// - Returns: The exit status of `child`; nil when it is still running at `deadline`.
  private static func wait(for child: pid_t, until deadline: ContinuousClock.Instant) throws -> Int32? {
    var status: Int32 = 0
    while true {
      let result = waitpid(child, &status, WNOHANG)
      if result == child { return status }
      guard result == 0 || errno == EINTR else { throw failure("was lost (\(systemErrorText()))") }
      guard ContinuousClock.now < deadline else { return nil }
      // It has closed its output and is about to exit.
      usleep(200)
    }
  }

  /// Ends `child` and its descendants, politely first so that they can restore the terminal.
  private static func end(_ child: pid_t) {
    // In a process group of its own, the command could not read from the terminal.
    let others = descendants(of: child)
    for process in others + [child] { kill(process, SIGTERM) }
    if (try? wait(for: child, until: .now + .seconds(2))) == .some(nil) {
      for process in descendants(of: child) + [child] { kill(process, SIGKILL) }
      var status: Int32 = 0
      while waitpid(child, &status, 0) < 0, errno == EINTR {}
    }
  }

  /// The running descendants of `process`, the youngest first, on systems that list them (Linux,
  /// proc_pid_children(5)).
  private static func descendants(of process: pid_t) -> [pid_t] {
    let descriptor = Platform.openForReading("/proc/\(process)/task/\(process)/children")
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = max(0, Platform.read(descriptor, &bytes, bytes.count))
    return bytes[..<count].split(separator: UInt8(ascii: " ")).flatMap { digits in
      pid_t(String(decoding: digits, as: UTF8.self)).map { descendants(of: $0) + [$0] } ?? []
    }
  }

  private static func check(_ status: Int32) throws {
    // The macros WIFEXITED, WEXITSTATUS and WTERMSIG, which Swift does not import.
    let signal = status & 0x7f
    let exitCode = (status >> 8) & 0xff
    if signal != 0 { throw failure("was ended by signal \(signal)") }
    if exitCode != 0 { throw failure("failed with exit code \(exitCode)") }
  }
}
