import Foundation
import Testing

#if canImport(Glibc)
  @preconcurrency import Glibc
#elseif canImport(Musl)
  @preconcurrency import Musl
#endif

/// A process that this one starts, with nothing open but what it is given.
///
/// Foundation's `Process` notices an end by a socket that others, started at the same moment, keep open as long as they run.
struct SpawnedProcess {
  let id: pid_t

  /// - Parameter files: What is open as its standard input, output and error.
  init(_ words: [String], environment: [String: String], files: [(path: String, flags: Int32)]) throws {
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
    for (number, file) in files.enumerated() {
      posix_spawn_file_actions_addopen(&actions, Int32(number), file.path, file.flags, 0o600)
    }
    #if canImport(Glibc)
      // glibc shows it to GNU programs only.
      typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
      if let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") {
        _ = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, 3)
      }
    #endif
    // Threads of a test runner block signals.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var id: pid_t = 0
    let result = posix_spawn(&id, words[0], &actions, &attributes, &arguments, &variables)
    try #require(result == 0, "\(words[0]) could not be started")
    self.id = id
  }

  /// Waits for its end.
  ///
  /// - Returns: Its exit code, or the signal that ended it as a negative number.
  func end() -> Int32 {
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0 { if errno != EINTR { return -1 } }
    let signal = status & 0x7f
    return signal == 0 ? status >> 8 & 0xff : -signal
  }
}
