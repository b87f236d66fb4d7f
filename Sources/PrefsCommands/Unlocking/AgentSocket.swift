import Coffer
import Dispatch

#if os(Linux)
  import CSystemCalls
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The Unix sockets of agents, and their folder.
package enum AgentSocket {
  // MARK: - Places

  /// The path of the socket for a store.
  static func path(storeID: String) -> String {
    // Half of the id is enough to distinguish stores, and a socket's path must be short.
    "\(folder)/\(storeID.prefix(16)).sock"
  }

  /// The path of the file that `prefs lock` leaves for processes that keep the vault of a store open.
  static func lockMarkPath(storeID: String) -> String { "\(folder)/\(lockMark(storeID: storeID))" }

  private static func lockMark(storeID: String) -> String { "\(storeID.prefix(16)).locked" }

  /// The path of the file that `prefs unlock` leaves for them.
  static func unlockMarkPath(storeID: String) -> String { "\(folder)/\(unlockMark(storeID: storeID))" }

  private static func unlockMark(storeID: String) -> String { "\(storeID.prefix(16)).unlocked" }

  /// Calls `handler` when either is replaced or removed.
  static func watchMarks(
    storeID: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) throws -> FileWatcher {
    let names = [lockMark(storeID: storeID), unlockMark(storeID: storeID)]
    return try FileWatcher(folder: folder, names: Set(names), queue: queue, handler)
  }

  /// `$XDG_RUNTIME_DIR/prefs`, else a folder of this user's in `/tmp`.
  private static var folder: String {
    Environment.variable("XDG_RUNTIME_DIR").map { "\($0)/prefs" } ?? "/tmp/prefs-\(geteuid())"
  }

  /// Creates the folder if it is missing, and checks it.
  ///
  /// - Throws: ``Failure`` with the status `refused` when it belongs to another user, or others may enter it.
  static func prepareFolder() throws {
    if mkdir(folder, 0o700) != 0, errno != EEXIST { throw Failure.system(folder, errno: errno) }
    guard isFolderPrivate else {
      throw Failure(
        .refused, "\(folder) is not a folder that is yours alone (mode 700). Remove it, or set XDG_RUNTIME_DIR.")
    }
  }

  /// Whether the folder belongs to this user, and others may not enter it.
  static var isFolderPrivate: Bool {
    var status = stat()
    guard lstat(folder, &status) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid() && status.st_mode & 0o077 == 0
  }

  /// Distinguishes a file from another one that replaced it.
  struct Identity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    init?(_ path: String) {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      device = status.st_dev
      inode = status.st_ino
    }
  }

  // MARK: - Ends

  /// A socket that listens at `path`, replacing an existing one.
  static func listen(at path: String) throws -> Int32 {
    // Created under another name, so that it is always listening once at its path.
    let temporaryPath = "\(path).\(getpid())"
    unlink(temporaryPath)
    let descriptor = try make()
    do {
      let mask = umask(0o177)
      defer { umask(mask) }
      try withAddress(temporaryPath) { address, size in
        guard bind(descriptor, address, size) == 0 else { throw Failure.system(temporaryPath, errno: errno) }
      }
      // Qualified: this method has the same name.
      guard systemListen(descriptor) == 0, rename(temporaryPath, path) == 0 else {
        throw Failure.system(path, errno: errno)
      }
      return descriptor
    } catch {
      unlink(temporaryPath)
      close(descriptor)
      throw error
    }
  }

  /// A connection to the listener at `path`; nil when there is none.
  static func connect(to path: String) throws -> Int32? {
    // Otherwise anyone who can put a socket there could pose as an agent.
    guard isFolderPrivate else { return nil }
    let descriptor = try make()
    let isConnected = try withAddress(path) { address, size in systemConnect(descriptor, address, size) == 0 }
    guard isConnected, isPeerThisUser(descriptor) else {
      close(descriptor)
      return nil
    }
    setTimeouts(descriptor)
    return descriptor
  }

  /// Whether the process at the other end is this user's.
  package static func isPeerThisUser(_ descriptor: Int32) -> Bool {
    var user = uid_t.max
    #if os(Linux)
      guard coffer_peer_user(descriptor, &user) == 0 else { return false }
    #else
      var group = gid_t.max
      guard getpeereid(descriptor, &user, &group) == 0 else { return false }
    #endif
    return user == geteuid()
  }

  /// A silent peer must not block the other end forever.
  static func setTimeouts(_ descriptor: Int32) {
    var time = timeval(tv_sec: 5, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
    }
  }

  // MARK: - Calls

  private static func make() throws -> Int32 {
    #if canImport(Glibc)
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw Failure.system("a socket", errno: errno) }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    return descriptor
  }

  private static func withAddress<R>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> R
  ) throws -> R {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    try withUnsafeMutableBytes(of: &address.sun_path) { buffer in
      // The rest stays zero, which terminates the path.
      guard bytes.count < buffer.count else {
        throw Failure(.inputOutput, "\(path) is too long for a socket. Set XDG_RUNTIME_DIR to a shorter one.")
      }
      buffer.copyBytes(from: bytes)
    }
    return try withUnsafePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}

// At file level, where no method hides them.

private func systemListen(_ descriptor: Int32) -> Int32 { listen(descriptor, 16) }

private func systemConnect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
  connect(descriptor, address, size)
}
