import Foundation

#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// A process that this one starts, with nothing open but what it is given.
///
/// Foundation's `Process` is not used: it copies 256 bytes for each name in `/proc/self/fd`, which crashes with some 1,360
/// files open, and it notices an end by a socket that others, started at the same moment, keep open as long as they run.
package struct SpawnedProcess: Sendable {
  package let id: pid_t

  /// What a process has open.
  package enum File {
    case path(String, flags: Int32)
    case descriptor(Int32)
  }

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - words: Its path and its arguments.
  ///   - files: By descriptor; those of this process go to 0, 1 and 2 only.
  ///   - hasOwnSession: Whether it is detached from the terminal of the person who runs the tests.
  /// - Throws: ``Refusal``.
  package init(
    _ words: [String], environment: [String: String] = ProcessInfo.processInfo.environment, files: [Int32: File],
    hasOwnSession: Bool = false
  ) throws {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    func open(_ descriptor: Int32) {
      switch files[descriptor] {
      case .path(let path, let flags): posix_spawn_file_actions_addopen(&actions, descriptor, path, flags, 0o600)
      case .descriptor(let own): posix_spawn_file_actions_adddup2(&actions, own, descriptor)
      case nil: break
      }
    }
    for descriptor: Int32 in 0...2 { open(descriptor) }
    #if canImport(Glibc)
      // glibc shows it to GNU programs only.
      typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
      if let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") {
        _ = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, 3)
      }
    #endif
    for descriptor in files.keys.sorted() where descriptor > 2 { open(descriptor) }
    // Threads of a test runner block signals, and what started it may ignore some; the process is to get them all.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    #if os(Linux)
      // glibc shows POSIX_SPAWN_SETSID to GNU programs only.
      let newSession: Int32 = 0x80
    #else
      let newSession = Int32(POSIX_SPAWN_SETSID)
    #endif
    let flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF) | (hasOwnSession ? newSession : 0)
    posix_spawnattr_setflags(&attributes, Int16(flags))
    let arguments = CWords(words)
    let variables = CWords(environment.map { "\($0)=\($1)" })
    var id: pid_t = 0
    let result = withExtendedLifetime((arguments, variables)) {
      posix_spawn(&id, words[0], &actions, &attributes, arguments.pointers, variables.pointers)
    }
    guard result == 0 else { throw Refusal(program: words[0], reason: String(cString: strerror(result))) }
    self.id = id
  }

  /// A program could not be started.
  package struct Refusal: Error {
    package let program: String
    package let reason: String
  }

  /// Waits for its end, once.
  ///
  /// - Returns: Its exit code, or the signal that ended it as a negative number.
  @discardableResult
  package func end() -> Int32 {
    while true {
      if let code = wait(0) { return code }
    }
  }

  /// What ``end()`` returns, or nil if it runs.
  func endIfEnded() -> Int32? { wait(WNOHANG) }

  private func wait(_ options: Int32) -> Int32? {
    var status: Int32 = 0
    let result = waitpid(id, &status, options)
    guard result != 0, result > 0 || errno != EINTR else { return nil }
    guard result > 0 else { return -1 }
    let signal = status & 0x7f
    return signal == 0 ? status >> 8 & 0xff : -signal
  }
}

/// Strings as C wants them for a new process.
private final class CWords {
  let pointers: [UnsafeMutablePointer<CChar>?]

  init(_ words: [String]) {
    pointers = words.map { (word: String) in strdup(word) } + [nil]
  }

  deinit { for pointer in pointers { free(pointer) } }
}
