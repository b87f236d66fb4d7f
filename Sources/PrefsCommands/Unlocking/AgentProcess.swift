#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A background instance of this program, detached from the terminal.
package enum AgentProcess {
  /// The descriptor on which an agent gets its listening socket; the key comes on 0.
  static let listener: Int32 = 3

  /// Starts the program in a new session.
  static func spawn(_ arguments: [String], key: Int32, listener: Int32) throws {
    // Moved above the descriptors 0 to 3, which would be overwritten.
    let movedKey = fcntl(key, F_DUPFD_CLOEXEC, 16)
    let movedListener = fcntl(listener, F_DUPFD_CLOEXEC, 16)
    defer { for descriptor in [movedKey, movedListener] { close(descriptor) } }
    _ = try ChildProcess.start(OwnProgram.executable, ["prefs"] + arguments) { actions, attributes in
      posix_spawn_file_actions_adddup2(&actions, movedKey, 0)
      posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
      posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
      posix_spawn_file_actions_adddup2(&actions, movedListener, Self.listener)
      posix_spawnattr_setflags(&attributes, Int16(newSession))
    }
  }

  #if os(Linux)
    /// `POSIX_SPAWN_SETSID`, which glibc declares only with `_GNU_SOURCE`.
    package static let newSession: Int32 = 0x80
  #else
    package static let newSession = Int32(POSIX_SPAWN_SETSID)
  #endif

  // MARK: - In the new process

  /// Leaves the caller's working folder and standard input, and closes descriptors above the listening socket.
  static func detach() {
    chdir("/")
    let nothing = open("/dev/null", O_RDONLY)
    if nothing > 0 { dup2(nothing, 0) }
    let limit = min(sysconf(Int32(_SC_OPEN_MAX)), 1 << 16)
    for descriptor in (listener + 1)..<max(listener + 2, Int32(clamping: limit)) { close(descriptor) }
  }
}
