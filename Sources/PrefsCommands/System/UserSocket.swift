#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A Unix socket at a path that a user names, for this user alone.
package enum UserSocket {
  /// Listens, replacing a socket that has no listener any more.
  ///
  /// - Throws: ``Failure`` if it cannot listen, or if something else is at the path.
  package static func listen(at path: String) throws -> Int32 {
    try makeWay(path)
    let descriptor = try make(path)
    // Only this user may use the socket, from the moment it exists. No other thread is running yet that the mask would affect.
    let mask = umask(0o177)
    defer { umask(mask) }
    let code = withAddress(path) { address, size in
      bind(descriptor, address, size) == 0 && startListening(descriptor) == 0 ? 0 : errno
    }
    guard code == 0 else {
      close(descriptor)
      throw failure(path, code)
    }
    return descriptor
  }

  /// Checks that no one else can put another socket at the path.
  ///
  /// - Throws: ``Failure`` with the status `refused`.
  package static func requireOwnFolder(of path: String) throws {
    let folder = FilePlace.folder(of: path)
    var status = stat()
    guard stat(folder, &status) == 0 else { throw Failure.system(folder, errno: errno) }
    guard [0, geteuid()].contains(status.st_uid), status.st_mode & 0o022 == 0 else {
      throw Failure(
        .refused, "others can write to \(folder). Name a socket in a folder of yours, such as one in $XDG_RUNTIME_DIR.")
    }
  }

  private static func make(_ path: String) throws -> Int32 {
    #if canImport(Glibc)
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw failure(path, errno) }
    return descriptor
  }

  private static func failure(_ path: String, _ code: Int32) -> Failure {
    Failure(.inputOutput, "cannot listen at \(path): \(Failure.systemMessage(code)). Name another one.")
  }

  /// Removes a socket that has no listener.
  private static func makeWay(_ path: String) throws {
    guard path.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
      throw Failure(.usage, "\(path) is too long for a socket.")
    }
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid() else {
      throw Failure(.conflict, "\(path) exists already and is not a socket of yours.")
    }
    let probe = try make(path)
    defer { close(probe) }
    guard withAddress(path, { connect(probe, $0, $1) }) != 0 else {
      throw Failure(.conflict, "another program already listens at \(path).")
    }
    unlink(path)
  }

  private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // The rest stays zero, which terminates the path.
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}

// At file level, where no method hides it.
private func startListening(_ descriptor: Int32) -> Int32 { listen(descriptor, 128) }
